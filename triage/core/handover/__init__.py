"""From everything that was found to the document that is handed over.

In:  an Investigation, with or without a Confirmation. Out: a Runbook, without markup.
Not: markup (triage.render).
"""

"""Can a configuration work with the engine and the model that are there, before any launch?

In:  facts of an installed engine and of a model, a Config. Out: Inspection.
Not: reading either (triage.installed).
"""

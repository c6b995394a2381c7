"""What differs between two launches, and which of it a flag brought along.

In:  a Side for each launch, and rules. Out: Diff. Not: reading files (triage.session.diff).
"""

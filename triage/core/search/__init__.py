"""From the journal of a search to its next trial, its failing sets and the proposal.

In:  a Problem and its journal. Out: Trials, FailingSets, a Recommendation.
Not: launching (triage.session) or writing it up (triage.core.handover.actions).
"""

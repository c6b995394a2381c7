"""Whether a flag is worth more work: what it could bring at best, how likely, for how long.

In:  a Problem with its model and node, what launches have shown, figures of others.
Out: Advice: gains with range and regime, a table of options, a decision and what would change it.
Not: the arithmetic of a step (triage.core.physics); launching; wording of pages (triage.render).
"""

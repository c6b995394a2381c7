"""The shell: wires stages to adapters, and is the only place that launches.

In:  what the command line parsed. Out: values for it to print.
Not: parsing (triage.cli), deciding (triage.core), drawing (triage.render).

Submodules are imported where they are needed: reading a log must not load what
launching needs.
"""

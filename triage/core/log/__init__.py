"""From the bytes of a log to a Diagnosis: lines, evidence, root and cascade.

In:  chunks of bytes, causes. Out: Diagnosis (diagnose.py), or a Watcher of a growing log (live.py).
Not: launching, or choosing what to launch next (triage.core.search).
"""

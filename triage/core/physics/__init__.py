"""What a server could reach at best: bytes, operations and latencies of one decode step.

In:  a Model, a Node, a Layout, a Load (plain numbers, units in the names).
Out: a Step: seconds a step by what takes them, the bytes that it reads; tokens a second.
Not: constants and their sources (triage.knowledge), flags (triage.core.advice).
"""

"""Read what a machine is: GPUs, host, packages, files. Every fact may be `Unavailable`.

In:  this machine, or a folder in its place. Out: values of triage.core.machine.
Not: judging them (triage.core.doctor); changing anything.
"""

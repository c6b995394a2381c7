"""Short experiments that tell causes apart; run by the Python of the engine, apart from triage.

In:  a name and arguments as JSON. Out: lines that begin with `triage-probe `, each with an event.
Not: what an outcome means (triage.core.probes); who starts and ends it (triage.launch.probe).

Nothing here imports anything of triage: the Python that runs it need not have it. Each
experiment runs in a fork of its own with a time limit, so that a crash, a hang or a broken
CUDA context is an outcome and not the end of the rest.
"""

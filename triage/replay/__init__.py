"""A stand-in engine: a real process with the manners of SGLang and no model.

In:  a landscape (which flag sets end how) and server arguments.
Out: log lines, processes, HTTP answers and exit codes; each says `simulated`.
Not: a substitute for the real engine; it knows nothing that its landscape does not say.
"""

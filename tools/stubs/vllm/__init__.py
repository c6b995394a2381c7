"""A stand-in for one function of vLLM, so that native models of SGLang run on any CPU.

SGLang 0.5.23 ships its rotary embedding for GPUs and for CPUs with AMX. On every
other machine it imports vLLM's, which needs a GPU build. This folder on PYTHONPATH
answers that import with plain torch; nothing else of vLLM is here, and an engine
that asks for more fails with the import error that it would show without it.
"""

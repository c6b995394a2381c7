"""A stand-in for SGLang: the few names that triage's resolver uses, with misdeeds on request."""

import os

__version__ = "9.8.7"

if "STAND_IN_IMPORT" in os.environ:
    raise RuntimeError(os.environ["STAND_IN_IMPORT"])
if "STAND_IN_MISSING" in os.environ:
    raise ModuleNotFoundError("No module named 'sglang'", name="sglang")
if "STAND_IN_DIES" in os.environ:
    print("it dies of its import", flush=True)
    os._exit(7)

"""Ask CUDA itself whether it starts, and which GPUs can multicast. For --deep and before a search.

In:  libcuda.so.1, as a server with this environment would find it. Out: Cuda.
Not: a context: nothing of a GPU's memory is taken. It is asked in a process of its own,
because a broken fabric or driver makes it hang.

Source: the CUDA driver API: cuInit, cuDeviceGetAttribute (132: multicast supported).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping

from triage.core.machine.facts import Fact, Unavailable
from triage.core.machine.gpus import Cuda

PATIENCE_S = 10.0
_ASK = """
import ctypes, json
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    print(json.dumps({"missing": str(error)}))
    raise SystemExit
code = cuda.cuInit(0)
name = ctypes.c_char_p()
if code:
    cuda.cuGetErrorName(code, ctypes.byref(name))
found, count, device, value = [], ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
if not code and not cuda.cuDeviceGetCount(ctypes.byref(count)):
    for index in range(count.value):
        cuda.cuDeviceGet(ctypes.byref(device), index)
        bad = cuda.cuDeviceGetAttribute(ctypes.byref(value), 132, device)
        found.append(None if bad else bool(value.value))
told = (name.value or b"").decode(errors="replace")
print(json.dumps({"code": code, "name": told, "multicast": found}))
"""


def cuda(env: Mapping[str, str]) -> Fact[Cuda]:
    """How CUDA starts on this machine, or why it could not be asked."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _ASK], env=dict(env), capture_output=True, check=False,
            timeout=PATIENCE_S,
        )  # fmt: skip
        told = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return Cuda(code=-1, name=f"no answer within {PATIENCE_S:g} s", multicast=())
    except (OSError, ValueError) as error:
        return Unavailable(f"CUDA could not be asked: {error}")
    if "missing" in told:
        return Unavailable("libcuda.so.1 is not found")
    return Cuda(code=told["code"], name=told["name"], multicast=tuple(told["multicast"]))

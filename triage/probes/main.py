"""Run one probe by its name; the last event says that it came to its end.

In:  argv: the name, the device, the limit of an experiment in seconds, arguments as JSON.
Out: events: start, experiments, end; or unavailable with the reason and the way out.
Not: meaning.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

from .harness import event, experiment

MODULES = {
    "mla-absorb-bmm": "mla_absorb_bmm",
    "graph-capture": "graph_capture",
    "multicast": "multicast",
    "cublas-handle": "cublas_handle",
    "allreduce": "allreduce",
    "rendezvous": "rendezvous",
    "moe-kernel": "moe_kernel",
    "self-test": "self_test",
}
WITHOUT_TORCH = frozenset(["multicast", "self-test"])


def main(words: list[str]) -> int:
    """The probe's exit code: 0 at its end, 4 if this Python cannot run it."""
    name, kind, limit, raw = words
    limit_s, arguments = float(limit), json.loads(raw)
    probe = importlib.import_module(f".{MODULES[name]}", __package__)
    torch = None
    facts: dict[str, Any] = {"python": sys.version.split()[0]}
    if name not in WITHOUT_TORCH:
        from .device import torch_or_none, versions

        torch = torch_or_none()
        if torch is None:
            event("unavailable", reason=f"torch does not import in {sys.executable}")
            return 4
        facts |= versions(torch)
        kind = _device(torch, kind, limit_s)
        if not kind:
            return 4
    event("start", probe=name, device=kind, versions=facts, pid=os.getpid())
    probe.run(torch, kind, arguments, limit_s)
    event("end")
    return 0


def _device(torch: Any, wanted: str, limit_s: float) -> str:
    """The device to use, found in a fork; "" if the wanted one is not there."""
    from .device import device_of

    if wanted == "cpu":
        return "cpu"
    found = experiment(
        "device", lambda: device_of(torch, "cuda").facts(), limit_s, quiet=wanted != "cuda"
    )
    if found["outcome"] == "passed":
        return "cuda"
    if wanted == "cuda":
        event("unavailable", reason=f"no GPU answers: {found['detail'][:300]}")
        return ""
    return "cpu"

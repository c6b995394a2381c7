"""Experiments that end in every way, without torch: what tests of the supervision run.

In:  the ways. Out: their events.
Not: anything about a machine.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from .harness import SkipError, experiment

NAME = "self-test"


def run(_torch: Any, _kind: str, arguments: dict[str, Any], limit_s: float) -> None:
    """Each way that `ways` names, in order."""
    for way in arguments.get("ways", ("pass", "raise")):
        experiment(way, WAYS[way], limit_s)


def _raise() -> dict[str, Any]:
    raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")


def _skip() -> dict[str, Any]:
    raise SkipError("not on this machine")


def _segv() -> dict[str, Any]:
    ctypes.string_at(0)
    return {}


def _hang() -> dict[str, Any]:
    time.sleep(3600)
    return {}


def _orphan() -> dict[str, Any]:
    """Leave a process behind that has left session and group."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(3600)
        os._exit(0)
    return {"pid": os.getpid()}


def _exit() -> dict[str, Any]:
    os._exit(3)


def _kill_the_runner() -> dict[str, Any]:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(3600)
    return {}


WAYS: dict[str, Callable[[], dict[str, Any]]] = {
    "pass": lambda: {"answer": 42},
    "raise": _raise,
    "skip": _skip,
    "segv": _segv,
    "hang": _hang,
    "orphan": _orphan,
    "exit": _exit,
    "kill-runner": _kill_the_runner,
}

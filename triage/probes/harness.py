"""Run experiments, each in a fork with a limit, and print what they gave as they end.

In:  functions that return facts. Out: events as lines on stdout.
Not: the experiments (the other modules) or their meaning (triage.core.probes).
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

MARK = "triage-probe "
STATUS = re.compile(r"CUBLAS_STATUS_\w+|CUDNN_STATUS_\w+|ncclUnhandled\w+|nccl[A-Z]\w*Error")
_LONGEST = 2000  # letters of an error that are kept
_RAW = 1 << 16
_TICK_MS = 5


class SkipError(Exception):
    """The experiment cannot be made here; the text says why."""


def event(kind: str, **facts: Any) -> None:
    """Print one event; the only thing that triage reads of a probe."""
    sys.stdout.write(f"{MARK}{json.dumps({'event': kind, **facts})}\n")
    sys.stdout.flush()


def experiment(
    name: str,
    function: Callable[[], dict[str, Any]],
    limit_s: float,
    *,
    quiet: bool = False,
    **given: Any,
) -> dict[str, Any]:
    """Run the function in a fork, print the event, and give back its content.

    `outcome` is passed, failed (an exception), crashed (a signal or an exit of its own),
    hung (the limit passed) or skipped. `given` is what the experiment was asked for; a
    `quiet` one is told only if it passed.
    """
    started = time.monotonic()
    read, write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        os.setsid()  # so that what it starts can be ended with it
        _child(function, write)
    os.close(write)
    raw, ended = _collect(read, pid, started + limit_s)
    os.close(read)
    found = _outcome(raw, ended, limit_s)
    found = {
        "name": name,
        "given": given,
        **found,
        "seconds": round(time.monotonic() - started, 3),
    }
    if not quiet or found["outcome"] == "passed":
        event("experiment", **found)
    return found


def _child(function: Callable[[], dict[str, Any]], write: int) -> None:
    """Run it and write what it gave; never returns."""
    try:
        answer: dict[str, Any] = {"outcome": "passed", "facts": function()}
    except SkipError as why:
        answer = {"outcome": "skipped", "detail": str(why), "facts": {}}
    except BaseException as error:  # noqa: BLE001  whatever it is, it is the outcome
        answer = {"outcome": "failed", "facts": {}, **_told(error)}
    try:
        rest = json.dumps(answer, default=str).encode()
        while rest:
            rest = rest[os.write(write, rest) :]
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(0)  # no destructor of a broken context


def _told(error: BaseException) -> dict[str, Any]:
    text = f"{type(error).__name__}: {error}"
    status = STATUS.search(text)
    return {"detail": text[:_LONGEST], "status": status[0] if status else type(error).__name__}


def _collect(read: int, pid: int, deadline: float) -> tuple[bytes, int | None]:
    """What the fork wrote, and its wait status; None: the limit passed and it was killed.

    A process that it left behind may hold the pipe open, so its own end counts.
    """
    raw, ended = b"", None
    poll = select.poll()
    poll.register(read, select.POLLIN)
    while ended is None and time.monotonic() < deadline:
        if poll.poll(_TICK_MS):
            chunk = os.read(read, _RAW)
            raw += chunk
            if not chunk:  # it closed its end, so it is about to end
                time.sleep(_TICK_MS / 1000)
        done, status = os.waitpid(pid, os.WNOHANG)
        ended = status if done else None
    _end_group(pid)
    if ended is None:
        os.waitpid(pid, 0)
    while poll.poll(0) and (chunk := os.read(read, _RAW)):
        raw += chunk
    return raw, ended


def _end_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _outcome(raw: bytes, ended: int | None, limit_s: float) -> dict[str, Any]:
    try:
        answer = json.loads(raw)
    except ValueError:
        answer = None
    if isinstance(answer, dict) and ended is not None:
        return {"detail": "", "status": "", **answer}
    if ended is None:
        said = f"no answer within {limit_s:g} s"
        return {"outcome": "hung", "detail": said, "status": "", "facts": {}}
    if os.WIFSIGNALED(ended):
        number = os.WTERMSIG(ended)
        name = signal.Signals(number).name
        return {"outcome": "crashed", "detail": f"ended by {name}", "status": name, "facts": {}}
    code = os.WEXITSTATUS(ended)
    return {
        "outcome": "crashed",
        "detail": f"ended with exit code {code}",
        "status": "",
        "facts": {},
    }

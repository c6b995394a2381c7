"""A service that runs now makes room for launches, and runs again at every end.

In:  the name of a systemd unit. Out: the unit stopped meanwhile, started and checked afterwards.
Not: choosing which; only one that the user named is ever stopped.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from subprocess import CompletedProcess

from triage.errors import HostError, UsageError, hint
from triage.launch.asking import ask
from triage.launch.keeper import Keeper

_CALL_S = 60.0
_STOP_S = 100.0  # longer than the usual TimeoutStopSec=90
_START_S = 60.0
_STEADY_S = 1.0
# What a killed triage launched is gone by then, so that its port and its GPUs are free again.
_AFTER = ["sleep", "2"]


@contextmanager
def taken_over(unit: str, say: Callable[[str], None]) -> Iterator[None]:
    """Stop `unit` meanwhile. It is started again whatever ends this: return, error, SIGKILL.

    Raises:
        UsageError: there is no such unit, or it does not run.
        HostError: it does not stop, or does not run again afterwards.
    """
    call = ["systemctl", *(["--user"] if os.geteuid() else [])]
    state = _state(call, unit)
    if state.get("LoadState") != "loaded":
        raise UsageError(f"there is no unit {unit}", hint="systemctl list-units --type=service")
    if state.get("ActiveState") not in {"active", "activating", "reloading"}:
        raise UsageError(
            f"{unit} does not run ({state.get('ActiveState')}), so there is nothing to take over",
            hint=hint(*call, "status", unit),
        )
    keeper = Keeper([_AFTER, [*call, "start", "--no-block", unit]])
    keeper.start()
    try:
        say(f"stopping {unit}; it is started again at the end, whatever happens")
        _stop(call, unit)
        yield
    finally:
        failures = keeper.finish()
        say(f"{unit} is started again")
        if why := _why_not_running(call, unit):
            raise HostError(
                f"{unit} does not run again: {'; '.join(failures) or why}",
                hint=hint(*call, "status", unit),
            )
        say(f"{unit} runs again")


def _stop(call: list[str], unit: str) -> None:
    """Stop it; children that ignore SIGTERM would hold GPUs and port for TimeoutStopSec."""
    _run([*call, "stop", "--no-block", unit])
    began = time.monotonic()
    killed = False
    while (state := _state(call, unit)).get("ActiveState") not in {"inactive", "failed"}:
        waited = time.monotonic() - began
        sub = state.get("SubState", "")
        main_gone = state.get("MainPID", "0") == "0"
        if not killed and main_gone and sub.startswith(("stop-", "final-")) and waited > 1.0:
            _run([*call, "kill", "-s", "KILL", unit])
            killed = True
        if waited > _STOP_S:
            raise HostError(
                f"{unit} does not stop: it is {state.get('ActiveState')} ({sub})",
                hint=hint(*call, "status", unit),
            )
        time.sleep(0.1)


def _why_not_running(call: list[str], unit: str) -> str:
    """How it stands, unless it has been active for a moment."""
    deadline = time.monotonic() + _START_S
    since = 0.0
    while True:
        now = time.monotonic()
        state = _state(call, unit)
        how = f"{state.get('ActiveState')} ({state.get('SubState')})"
        if state.get("ActiveState") == "active":
            since = since or now
            if now - since >= _STEADY_S:
                return ""
        else:
            since = 0.0
        if state.get("ActiveState") == "failed" or now > deadline:
            return how
        time.sleep(0.1)


def _state(call: list[str], unit: str) -> dict[str, str]:
    names = "LoadState,ActiveState,SubState,MainPID"
    text = _run([*call, "show", "-p", names, "--", unit]).stdout
    return dict(line.partition("=")[::2] for line in text.splitlines())


def _run(words: list[str]) -> CompletedProcess[str]:
    return ask(words, within_s=_CALL_S, look="systemctl status")

"""GPU memory comes back after a launch, or somebody is named who holds it.

In:  NVML, before and after a launch. Out: "" or a sentence.
Not: ending whoever holds it; a machine without NVML has nothing to say.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from triage.core.machine.facts import Unavailable
from triage.machine.gpus import NoNvmlError, Nvml, open_nvml

_WAIT_S = 30.0
_LOOK_S = 0.1
# Less than any CUDA context takes, more than the driver's own account moves by.
_SLACK_MIB = 64


def memory_used() -> dict[int, int]:
    """GPU -> MiB in use now; empty where there is no NVML."""
    try:
        with open_nvml() as nvml:
            return _used(nvml)
    except NoNvmlError:
        return {}


def await_release(
    before: dict[int, int], say: Callable[[str], None] | None, *, wait_s: float = _WAIT_S
) -> str:
    """Wait until each GPU is as empty as before.

    Args:
        before: What `memory_used` gave before the launch; GPUs that it lacks are not looked at.
        say: Told once that it takes a while.
        wait_s: The longest wait.

    Returns:
        "" once it is so; else which GPU still holds how much, and which processes have it.
    """
    if not before:
        return ""
    deadline = time.monotonic() + wait_s
    told = False
    try:
        with open_nvml() as nvml:
            while left := _left(before, _used(nvml)):
                if time.monotonic() >= deadline:
                    return _sentence(nvml, left)
                if say is not None and not told:
                    told = True
                    say("waiting for the GPUs' memory to come back")
                time.sleep(_LOOK_S)
    except NoNvmlError as error:
        return f"NVML answers no more: {error.fact.reason}"
    return ""


def _used(nvml: Nvml) -> dict[int, int]:
    return {
        reading.index: reading.memory_used_mib
        for reading in nvml.readings()
        if not isinstance(reading.memory_used_mib, Unavailable)
    }


def _left(before: dict[int, int], now: dict[int, int]) -> dict[int, int]:
    """GPU -> MiB more than before."""
    more = {index: now[index] - used for index, used in before.items() if index in now}
    return {index: mib for index, mib in more.items() if mib > _SLACK_MIB}


def _sentence(nvml: Nvml, left: dict[int, int]) -> str:
    index = max(left, key=lambda one: left[one])
    others = f" (and {len(left) - 1} more)" if len(left) > 1 else ""
    holders = sorted({holder.pid for holder in nvml.holders() if holder.index in left})
    by = f"held by process {', '.join(map(str, holders))}" if holders else "held by no process"
    return f"GPU {index}{others} still holds {left[index]} MiB of the launch, {by}"

"""The ends of a launch's processes, as they are kept.

In:  Remains of a target, when the launch began. Out: Exit values, and their document.
Not: seeing how a process ends (deaths.py).
"""

from __future__ import annotations

from dataclasses import asdict

from triage.core.launch import Exit
from triage.core.log.ranks import titled
from triage.launch.target import Remains

MOST = 400  # a build of kernels starts a thousand compilers
NOT_SEEN = "its processes run on other machines"


def exits_of(remains: Remains, began: float) -> tuple[Exit, ...]:
    """Every process of the launch: those that ended first, then those of which nothing is known.

    Of more than 400 those that ended well and are no rank are left out.
    """
    ended = [
        Exit(
            pid=death.pid,
            name=death.name,
            rank=titled(death.name),
            exit_code=death.code,
            seconds=round(death.at - began, 3),
            by_us=death.ours,
        )
        for death in sorted(remains.deaths, key=lambda death: death.at)
    ]
    told = {one.pid for one in ended}
    rest = [Exit(pid=pid, name="") for pid in remains.pids if pid not in told]
    every = [*ended, *rest]
    if len(every) > MOST:
        every = [one for one in every if one.exit_code or one.rank or one.by_us][:MOST]
    return tuple(every)


def exits_document(exits: tuple[Exit, ...]) -> list[dict[str, object]]:
    """The value of `processes` in exit.json."""
    return [asdict(one) for one in exits]

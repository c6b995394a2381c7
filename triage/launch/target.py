"""Where a server can be launched, as one small protocol.

In:  nothing. Out: Target, and the values that it gives.
Not: any target itself (process.py), or when to stop (supervise.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from triage.launch.deaths import Death


@dataclass(frozen=True, slots=True)
class Ended:
    """The server's main process is no more.

    `by` is empty if its exit code (negative: the signal) is known, else it
    says what took the launch from us.
    """

    exit_code: int | None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Remains:
    """What a launch was, once nothing of it is left.

    `removed` are paths; `stuck` are processes that survived SIGKILL, with
    their state, waiting in the kernel. `said` is what the hand that ran the launch
    told of it (the service manager, the container engine, the scheduler), a line each.
    `deaths` are the ends of its processes in their order, `unseen` why there are none.
    """

    pids: tuple[int, ...]
    removed: tuple[str, ...]
    stuck: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    deaths: tuple[Death, ...] = ()
    unseen: str = ""


class Target(Protocol):
    """One launch of one server; every call but `logs` and `close` returns soon."""

    def start(self) -> None:
        """Start it.

        Raises:
            UsageError: There is no such program or folder.
            HostError: This machine cannot start it.
        """

    def begun(self) -> bool:
        """Whether the server runs by now; before, it waits for nodes or for an image."""

    def poll(self) -> Ended | None:
        """How the main process ended; None while it runs."""

    def stop(self, *, force: bool) -> None:
        """Ask the main process to end; with `force`, end the whole launch."""

    def logs(self, wait_s: float) -> bytes | None:
        """The next bytes of output, waiting for at most `wait_s`; None when there can be none."""

    def pids(self) -> tuple[int, ...]:
        """Its live processes, the main one first."""

    def stacks(self, within_s: float) -> str:
        """Where its processes stand, read within this time; "" if there is none to read."""

    def reach(self, port: int) -> str:
        """The address of our own listener on the port; "" while there is none."""

    def close(self) -> Remains:
        """End what is left of it, remove its files, and say what there was."""

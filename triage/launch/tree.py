"""Which processes exist, who descends from whom, and which are alive.

In:  /proc. Out: Proc values; nothing is cached.
Not: deciding whom to end. Light imports only: the guard uses this.
"""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Proc:
    """One process as /proc/PID/stat tells it; `start` (clock ticks) tells a reused PID apart."""

    __slots__ = ("alive", "comm", "parent", "pid", "session", "start", "state")

    def __init__(self, pid: int, stat: str) -> None:
        # The name stands in brackets and may itself hold brackets and spaces.
        head, _, tail = stat.rpartition(")")
        words = tail.split()
        self.pid = pid
        self.comm = head.partition("(")[2]
        self.state = words[0]
        self.parent = int(words[1])
        self.session = int(words[3])
        self.start = int(words[19])
        # A zombie runs nothing, holds nothing, and waits only for its parent to read its status.
        self.alive = self.state not in "ZXx"


def look(pid: int) -> Proc | None:
    """The process, or None if it is gone or may not be seen."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return Proc(pid, file.read())
    except (OSError, IndexError, ValueError):
        return None


def living(starts: dict[int, int]) -> list[Proc]:
    """Those of these processes (pid -> start) that are alive; a reused PID is another process."""
    looked = ((look(pid), start) for pid, start in starts.items())
    return [proc for proc, start in looked if proc and proc.alive and proc.start == start]


def stuck(pid: int, state: str) -> str:
    """A process that does not end, in words: its name, and where in the kernel it waits."""
    proc = look(pid)
    name = f" ({proc.comm})" if proc else ""
    where = _kernel(pid, "wchan")
    calls = [line.split()[-1].partition("+")[0] for line in _kernel(pid, "stack").splitlines()[:4]]
    said = f"process {pid}{name} in state {state}"
    if where not in ("", "0"):
        said += f", waiting in {where}"
    return said + (f" (kernel: {' < '.join(calls)})" if calls else "")


def _kernel(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        return ""


def table() -> dict[int, Proc]:
    """Every process by PID; one that ends meanwhile may be missing."""
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and (proc := look(int(name))) is not None:
            found[proc.pid] = proc
    return found


def descendants(roots: Iterable[int], processes: dict[int, Proc]) -> list[Proc]:
    """All processes below the roots, dead ones too, the roots themselves left out."""
    children: dict[int, list[Proc]] = {}
    for proc in processes.values():
        children.setdefault(proc.parent, []).append(proc)
    found: list[Proc] = []
    todo = list(roots)
    while todo:
        below = children.pop(todo.pop(), [])
        found += below
        todo += [proc.pid for proc in below]
    return found


def marked(
    known: dict[int, tuple[int, int]], variable: str, processes: dict[int, Proc]
) -> list[Proc]:
    """Live processes of a launch whose common ancestor is gone.

    `known` holds session and start of each process that was seen. A process
    counts if it was seen before, if its session was, if its environment holds
    `variable` (`NAME=value`), or if it descends from such a one. No single mark
    is enough: setproctitle wipes the environment that /proc shows, and a daemon
    leaves the session.
    """
    sessions = {session for session, _ in known.values()}
    found = {
        pid: proc
        for pid, proc in processes.items()
        if (pid in known and known[pid][1] == proc.start)
        or proc.session in sessions
        or _has_variable(pid, variable.encode())
    }
    found.update((proc.pid, proc) for proc in descendants(found, processes))
    return [proc for proc in found.values() if proc.alive]


def _has_variable(pid: int, variable: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            return variable in file.read().split(b"\0")
    except OSError:
        return False


def kill(processes: Iterable[Proc]) -> None:
    """SIGKILL to each; those that are gone or belong to another user are passed over.

    A pidfd stays with its process, so a number that is used again hits nobody else.
    """
    for proc in processes:
        try:
            descriptor = os.pidfd_open(proc.pid)
        except OSError:
            continue
        try:
            now = look(proc.pid)
            if now is not None and now.start == proc.start:
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        except OSError:
            continue
        finally:
            os.close(descriptor)


def end_all(find: Callable[[], list[Proc]], within_s: float) -> list[Proc]:
    """Kill what `find` finds until three looks in a row find nothing.

    Returns:
        Those that are still alive when the time is over.
    """
    deadline = time.monotonic() + within_s
    clean = 0
    left: list[Proc] = []
    while clean < 3 and time.monotonic() < deadline:  # noqa: PLR2004  a fork may outrun one look
        left = find()
        kill(left)
        clean = 0 if left else clean + 1
        time.sleep(0.01)
    return left

"""The shared-memory files of a launch that is no child of ours: watched, and removed at the end.

In:  its live processes, now and then. Out: paths removed.
Not: processes (the target's own matter); the guard keeps its own account (guard.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from triage.launch import leftovers

_LOOK_S = 1.0


class Belongings:
    """What new files in /dev/shm these processes used, from the moment it is made."""

    def __init__(self) -> None:
        self._before = set(leftovers.present())
        self._ours: set[leftovers.FileId] = set()
        self._next = 0.0

    def look(self, pids: Iterable[int]) -> None:
        """Notice the files that these processes use; once a second at most."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _LOOK_S
        fresh = set(leftovers.present()) - self._before - self._ours
        if fresh:
            self._ours |= fresh & leftovers.used_by(pids)

    def remove(self) -> list[str]:
        """Remove them, once nobody uses them any more; the paths."""
        return leftovers.remove_shared(self._ours | leftovers.semaphores(self._before))

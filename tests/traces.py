"""What a launch could leave on a machine: processes, and with them ports, and shared memory."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil


class Descendants(threading.Thread):
    """Notes every process that comes to stand below this one while the context lasts.

    Leaving it, `left` names what outlived the launches: descendants that still
    run (an orphan among them was below us before it was one), and shared memory
    that came meanwhile and that nobody uses. Ports are not looked at: none listens
    without a process. Other programs of the machine do not count.
    """

    def __init__(self) -> None:
        super().__init__(name="descendants", daemon=True)
        self._seen: dict[int, float] = {}
        self._over = threading.Event()
        self._memory = shared_memory()

    def __enter__(self) -> Self:
        """Start to look."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop to look."""
        self._over.set()
        self.join()

    def run(self) -> None:
        """The thread: look often enough that nothing is born and orphaned in between."""
        me = psutil.Process()
        while not self._over.wait(0.1):
            for child in me.children(recursive=True):
                with suppress(psutil.Error):
                    self._seen.setdefault(child.pid, child.create_time())

    @property
    def count(self) -> int:
        """How many different processes were seen."""
        return len(self._seen)

    def left(self) -> list[str]:
        """What is still there, in words; empty if nothing is."""
        running = [pid for pid, born in self._seen.items() if same_process(pid, born)]
        deadline = time.monotonic() + 5
        while (memory := self._memory_left()) and time.monotonic() < deadline:
            time.sleep(0.1)  # it may be of a test beside this one, that will remove it
        return [
            *(f"process {pid}" for pid in alive(running)),
            *(f"/dev/shm/{name}" for name in sorted(memory)),
        ]

    def _memory_left(self) -> frozenset[str]:
        return shared_memory() - self._memory - in_use()


def same_process(pid: int, born: float) -> bool:
    """Whether the pid still is the process that was born then."""
    try:
        return abs(psutil.Process(pid).create_time() - born) < 0.05
    except psutil.Error:
        return False


def shared_memory() -> frozenset[str]:
    """Names in /dev/shm."""
    return frozenset(os.listdir("/dev/shm"))  # noqa: PTH208


def in_use() -> frozenset[str]:
    """Names in /dev/shm that a live process maps or holds open."""
    used = set()
    for pid in psutil.pids():
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                if "/dev/shm/" in line:
                    used.add(line.rpartition("/dev/shm/")[2].split(" ")[0])
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    if str(target := descriptor.readlink()).startswith("/dev/shm/"):
                        used.add(target.name)
    return frozenset(used)


def children_of(pid: int) -> list[int]:
    """Every descendant that is alive, whatever session it is in."""
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def gone(pids: list[int], within_s: float = 10.0) -> None:
    """Wait until none of them runs; fail if one still does then."""
    deadline = time.monotonic() + within_s
    while (left := alive(pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left == []


def alive(pids: list[int]) -> list[int]:
    """Those that still run: a zombie only waits to be counted."""
    running = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            running.append(pid)
    return running

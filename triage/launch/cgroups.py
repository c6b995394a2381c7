"""A control group of a launch's own, where the kernel and our rights allow one.

In:  a name. Out: Group: who is in it, an end for all of them at once, and how many of them the
     kernel killed for want of memory.
Not: the launch's processes where there is no such group (tree.py). Light imports only.

Source: cgroups(7) and the kernel's cgroup-v2 document: `cgroup.kill` (since 5.14) also ends what
forks meanwhile; `cgroup.freeze` (since 5.2) stops them all, and a frozen process still dies of
SIGKILL; `memory.events` counts `oom_kill`, of version 1 `memory.oom_control` does.
"""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROC = "/proc"
_ROUNDS, _ROUND_S = 200, 0.005  # a second, in which also a kernel that cannot hold them is done


class Group:
    """A group of version 2; its members are the launch, and only the launch."""

    def __init__(self, path: str) -> None:
        self.path = path

    def add(self, pid: int) -> None:
        """Put a process into it.

        Raises:
            OSError: the kernel does not allow it.
        """
        _write(f"{self.path}/cgroup.procs", str(pid))

    def members(self) -> list[int]:
        """Processes in it and in the groups below it, dead ones left out."""
        found = []
        for folder in self._folders():
            found += [int(word) for word in _read(f"{folder}/cgroup.procs").split()]
        return found

    def populated(self) -> bool:
        """Whether a process lives in it, or below it."""
        return "populated 1" in _read(f"{self.path}/cgroup.events")

    def kill(self) -> None:
        """SIGKILL to all of them."""
        try:
            _write(f"{self.path}/cgroup.kill", "1")
        except OSError:  # an older kernel: hold them, so that none forks meanwhile
            self._freeze("1")
            self._end_each()
            self._freeze("0")

    def _end_each(self) -> None:
        """SIGKILL to each, until none can have forked unseen: they are held only a while later."""
        ended: set[int] = set()
        for _ in range(_ROUNDS):
            held = "frozen 1" in _read(f"{self.path}/cgroup.events")  # before they are listed
            fresh = set(self.members()) - ended
            for pid in fresh:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    continue
            ended |= fresh
            if not self.populated() or (held and not fresh):
                return
            time.sleep(_ROUND_S)

    def remove(self) -> bool:
        """Remove it with the groups below it; False while somebody is in it."""
        for folder in reversed(list(self._folders())):
            try:
                os.rmdir(folder)  # noqa: PTH106
            except OSError:
                return False
        return True

    def _freeze(self, state: str) -> None:
        try:
            _write(f"{self.path}/cgroup.freeze", state)
        except OSError:
            return

    def _folders(self) -> Iterator[str]:
        for folder, _, _ in os.walk(self.path):
            yield folder


def make(name: str) -> Group | str:
    """A new group below our own, or why there is none, in a few words."""
    folder = own_folder()
    if not folder:
        return "no hierarchy of version 2 is mounted here"
    path = f"{folder}/{name}"
    try:
        os.mkdir(path)  # noqa: PTH102
    except OSError as error:
        return f"{folder}: {error.strerror}"
    if os.path.exists(f"{path}/cgroup.procs"):  # noqa: PTH110
        return Group(path)
    os.rmdir(path)  # noqa: PTH106
    return f"{folder} is no control group"


def own_folder() -> str:
    """Where our own group of version 2 is seen, "" if it is not."""
    return next((f for f, kind in _groups("self") if kind == "cgroup2"), "")


def oom_kills(pid: int | str = "self") -> dict[str, int]:
    """How often the kernel killed for memory in the groups that bound a process: file -> count.

    A group counts what happens below it, too. Of version 2 the nearest is taken that counts.
    """
    found = {}
    for folder, kind in _groups(pid):
        for file in _counters(folder, kind):
            words = _read(file).split()
            if "oom_kill" in words:
                found[file] = int(words[words.index("oom_kill") + 1])
                break
    return found


def _counters(folder: str, kind: str) -> Iterator[str]:
    """The files that may count, the nearest first."""
    if kind == "cgroup":
        yield f"{folder}/memory.oom_control"
    while kind == "cgroup2" and folder.count("/") > 1:
        yield f"{folder}/memory.events"
        folder = folder.rpartition("/")[0]


def _groups(pid: int | str) -> Iterator[tuple[str, str]]:
    """The folders of a process's group of version 2 and of its memory group of version 1."""
    mounts = list(_mounts())
    for line in _read(f"{PROC}/{pid}/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        names = controllers.split(",")
        if number != "0" and "memory" not in names:
            continue
        for place, root, kind, options in mounts:
            fits = kind == "cgroup2" if number == "0" else "memory" in options.split(",")
            below = path.removeprefix(root.rstrip("/"))
            # Seen from a namespace whose root we are not below, the path climbs.
            if fits and path.startswith(root) and ".." not in path.split("/"):
                yield (place + below).rstrip("/"), kind
                break


def _mounts() -> Iterator[tuple[str, str, str, str]]:
    """Mounted control groups: place, root, kind (`cgroup2` or `cgroup`), options."""
    for line in _read(f"{PROC}/self/mountinfo").splitlines():
        # 36 35 98:0 /root /place rw,relatime shared:1 - cgroup2 source rw,memory
        before, _, after = line.partition(" - ")
        words, kinds = before.split(), after.split()
        if kinds[:1] in (["cgroup2"], ["cgroup"]):
            yield words[4], words[3], kinds[0], kinds[-1]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


class Kills:
    """Deaths for want of memory since a first look, in the groups that processes were seen in."""

    def __init__(self, read: Callable[[int | str], dict[str, int]] = oom_kills) -> None:
        self._read = read
        self._first: dict[str, int] = {}

    def look(self, pid: int | str = "self") -> None:
        """Remember the counts of this process's groups, if they are new."""
        for file, count in self._read(pid).items():
            self._first.setdefault(file, count)

    def since(self) -> dict[str, int]:
        """Files whose count rose, and by how much; a group that is gone tells nothing."""
        found = {}
        for file, first in self._first.items():
            words = _read(file).split()
            if "oom_kill" in words:
                more = int(words[words.index("oom_kill") + 1]) - first
                if more > 0:
                    found[file] = more
        return found

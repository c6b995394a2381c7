"""How each process of a launch ended, children of others too.

In:  PIDs to watch. Out: Death records: PID, exit code, when, name, and whether we ended it.
Not: finding the processes (tree.py), or what a death means. Light imports only: the guard and
     the nodes of a job use this, so it imports nothing of ours and stands alone as a text.

A server's main process collects the status of its own children, so nobody else's waitpid() has
it. A descriptor of the process (pidfd) tells that it ended, and since Linux 6.15 how, even after
somebody else collected it; before that the zombie's entry in /proc is read, if it is still there.

Source: linux/pidfd.h (PIDFD_GET_INFO, PIDFD_INFO_EXIT); proc_pid_stat(5), field 52.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import time

_GET_INFO = 0xC000FF0B | 64 << 16  # _IOWR(0xFF, 11, struct pidfd_info), its first version
_EXIT = 1 << 3
_WAIT_S = 1.0  # for whoever has to collect a zombie, before its code counts as unknown
_NAME = 80
_STATUS = 52 - 3  # field 52 of /proc/PID/stat, counted from the state


class Death:
    """One process: `code` is negative for a signal, None if nobody could tell; `at` monotonic."""

    __slots__ = ("at", "code", "name", "ours", "pid")

    def __init__(self, pid: int, code: int | None, at: float, name: str, ours: bool) -> None:  # noqa: FBT001
        self.pid, self.code, self.at, self.name, self.ours = pid, code, at, name, ours


class Deaths:
    """Watches processes; `collect` gives those that ended since.

    `fileno` turns readable when one ends. Once `ending` is set, we end them.
    """

    def __init__(self) -> None:
        self.ending = False
        self.names: dict[int, str] = {}
        self._epoll: select.epoll | None = select.epoll() if hasattr(select, "epoll") else None
        self._open: dict[int, int] = {}  # descriptor -> pid
        self._late: dict[int, tuple[int, float, bool]] = {}  # descriptor -> pid, when, ours
        self._done: set[int] = set()

    def fileno(self) -> int:
        """A descriptor to wait on; -1 where there is none."""
        return self._epoll.fileno() if self._epoll is not None else -1

    def watch(self, pid: int) -> None:
        """From now on its end is told; called again, its name is read again."""
        self.names[pid] = process_name(pid) or self.names.get(pid, "")
        if self._epoll is None or pid in self._done or pid in self._open.values():
            return
        try:
            descriptor = os.pidfd_open(pid)
        except (AttributeError, OSError):  # no such call, no such process, no descriptor left
            return
        self._open[descriptor] = pid
        self._epoll.register(descriptor, select.EPOLLIN)

    def collect(self, *, last: bool = False) -> list[Death]:
        """Those that ended; with `last` also those of which nobody can tell how."""
        found = []
        for descriptor, _ in self._epoll.poll(0) if self._epoll is not None else ():
            pid = self._open.pop(descriptor)
            if self._epoll is not None:
                self._epoll.unregister(descriptor)
            self._late[descriptor] = (pid, time.monotonic(), self.ending)
        for descriptor, (pid, at, ours) in list(self._late.items()):
            code = _told(descriptor)
            if code is None:
                code = _zombie(pid)
            if code is None and not last and time.monotonic() - at < _WAIT_S:
                continue
            del self._late[descriptor]
            os.close(descriptor)
            if pid not in self._done:
                self._done.add(pid)
                found.append(Death(pid, code, at, self.names.get(pid, ""), ours))
        return found

    def reaped(self, pid: int, code: int) -> list[Death]:
        """The same for a child of ours whose status was collected here: this process, if new."""
        if pid in self._done:
            return []
        self._done.add(pid)
        at, ours = time.monotonic(), self.ending
        for watched, when, before in self._late.values():
            if watched == pid:
                at, ours = when, before
        return [Death(pid, code, at, self.names.get(pid, ""), ours)]

    def close(self) -> None:
        """Let go of the descriptors."""
        for descriptor in (*self._open, *self._late):
            os.close(descriptor)
        self._open, self._late = {}, {}
        if self._epoll is not None:
            self._epoll.close()
            self._epoll = None


def process_name(pid: int) -> str:
    """What a process calls itself: the title that it set, else its program; "" if it is gone.

    Words of the command line are left out, but for the module that a Python runs.
    """
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:  # noqa: PTH123, UP031
            words = file.read(4096).split(b"\0")
        with open("/proc/%d/comm" % pid, "rb") as file:  # noqa: PTH123, UP031
            comm = file.read().strip().decode("utf-8", "replace")
    except OSError:
        return ""
    title = words[0].decode("utf-8", "replace").strip()
    if "::" in title:
        comm = title
    elif words[1:2] == [b"-m"] and len(words) > 2:  # noqa: PLR2004
        comm += " -m " + words[2].decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "?" for letter in comm)[:_NAME]


def _told(descriptor: int) -> int | None:
    """The exit code that the kernel keeps for a process that was collected."""
    asked = bytearray(64)
    struct.pack_into("=Q", asked, 0, _EXIT)
    try:
        fcntl.ioctl(descriptor, _GET_INFO, asked)
    except OSError:
        return None
    if not struct.unpack_from("=Q", asked, 0)[0] & _EXIT:
        return None
    return exit_code(struct.unpack_from("=i", asked, 60)[0])


def _zombie(pid: int) -> int | None:
    """The exit code of a process that nobody has collected yet, where we may see it."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:  # noqa: PTH123, UP031
            words = file.read().rpartition(b")")[2].split()
            seen = os.geteuid() in (0, os.fstat(file.fileno()).st_uid)
    except OSError:
        return None
    if words[0] not in (b"Z", b"X") or not seen or len(words) <= _STATUS:
        return None
    return exit_code(int(words[_STATUS]))


def exit_code(status: int) -> int:
    """The exit code in a wait status; negative: the signal."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

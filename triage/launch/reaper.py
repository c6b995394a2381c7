"""Runs a command on a node, with everything that it starts kept below it.

In:  the words of the command. Out: its exit code, once nothing of it is left. SIGTERM is passed on
     to the command; SIGUSR1 ends everything.
     On each line of a file: how a process below it ended.
Not: imported by triage: its text goes into the job script behind that of deaths.py, for a node has
     no triage. Standard library of any Python 3 only.

A scheduler that tracks processes by their parents loses a daemon that left its parent. Below a
child subreaper none does, so cancelling the job ends it too. The shared-memory files that the
command's processes map are removed with them.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time

from triage.launch.deaths import Death, Deaths, exit_code

SHM = "/dev/shm"  # noqa: S108  the place of POSIX shared memory
LOOK_S = 0.2
WATCH = 5  # looks at shared memory for one at the processes


def below(root: int) -> set[int]:
    """Live processes below one, as /proc tells."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
        try:
            with open("/proc/" + name + "/stat", "rb") as file:  # noqa: PTH123
                words = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if words[0] not in (b"Z", b"X"):
            parents[int(name)] = int(words[1])
    found, size = {root}, 0
    while len(found) != size:
        size = len(found)
        found |= {pid for pid, parent in parents.items() if parent in found}
    return found - {root}


def shared() -> set[str]:
    """The files directly in /dev/shm."""
    try:
        return set(os.listdir(SHM))  # noqa: PTH208
    except OSError:
        return set()


def mapped(names: set[str], pids: set[int]) -> set[str]:
    """Those of the files that these processes map."""
    found = set()
    for pid in pids:
        try:
            with open("/proc/%d/maps" % pid, errors="replace") as file:  # noqa: PTH123, UP031
                text = file.read()
        except OSError:
            continue
        found |= {name for name in names if SHM + "/" + name + "\n" in text}
    return found


def listening(port: int, pids: set[int]) -> bool:
    """Whether one of these processes listens on the TCP port."""
    links = set()
    for name in ("tcp", "tcp6"):
        try:
            with open("/proc/net/" + name) as file:  # noqa: PTH123
                rows = [line.split() for line in file][1:]
        except OSError:
            continue
        links |= {
            "socket:[" + row[9] + "]"
            for row in rows
            if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port
        }
    return bool(links) and any(links & opened(pid) for pid in pids)


def opened(pid: int) -> set[str]:
    """What its descriptors stand for."""
    found = set()
    folder = "/proc/%d/fd/" % pid  # noqa: UP031
    try:
        for name in os.listdir(folder):  # noqa: PTH208
            found.add(os.readlink(folder + name))  # noqa: PTH115
    except OSError:
        pass
    return found


class Reaper:
    """One command, and what it has made."""

    def __init__(self, told: str) -> None:
        self.told = told  # the file of the ends
        self.port = int(os.environ.pop("TRIAGE_PORT", "0"))  # until it is listened on
        self.deaths = Deaths()
        self.looks = 0
        self.own = os.getpid()
        self.pid = 0  # the command; our own number once it has ended
        self.before = shared()
        self.made: set[str] = set()

    def look(self, *_: object) -> None:
        """Notice new shared-memory files of ours."""
        new = shared() - self.before - self.made
        if new:
            self.made |= mapped(new, below(self.own))
        self.looks += 1
        if self.looks % WATCH == 1:
            ours = below(self.own)
            for pid in ours:
                self.deaths.watch(pid)
            if self.port and listening(self.port, ours):
                self.port = 0
                self.prove()
        self.tell(self.deaths.collect())

    def prove(self) -> None:
        """Write that the listener is a process of ours."""
        folder, _, name = self.told.rpartition("/")
        try:
            with open(folder + "/" + name.replace("exits", "listens"), "w"):  # noqa: PTH123
                pass
        except OSError:
            return

    def tell(self, deaths: list[Death]) -> None:
        """A line for each: PID, exit code, time of day, whether we ended it, name."""
        if not deaths:
            return
        shift = time.time() - time.monotonic()
        try:
            with open(self.told, "a", errors="replace") as file:  # noqa: PTH123
                for one in deaths:
                    code = "?" if one.code is None else str(one.code)
                    words = [str(one.pid), code, "%.3f" % (one.at + shift), str(int(one.ours))]
                    file.write(" ".join([*words, one.name]) + "\n")
        except OSError:
            return

    def pass_on(self, *_: object) -> None:
        """SIGTERM is for the command alone."""
        self.deaths.ending = True
        if self.pid != self.own:
            try:
                os.kill(self.pid, signal.SIGTERM)
            except OSError:
                return  # it has ended by itself, and is about to be noticed

    def end(self, *_: object) -> None:
        """Kill whatever is left."""
        self.look()
        self.deaths.ending = True
        for other in below(self.own):
            try:
                os.kill(other, signal.SIGKILL)
            except OSError:
                continue

    def run(self, argv: list[str]) -> int:
        """Run it; the wait status of the command."""
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.execvp(argv[0], argv)  # noqa: S606
            except OSError as error:
                sys.stderr.write("%s: %s\n" % (argv[0], error.strerror))  # noqa: UP031
            os._exit(127)
        signal.signal(signal.SIGTERM, self.pass_on)
        signal.signal(signal.SIGUSR1, self.end)
        signal.signal(signal.SIGALRM, self.look)
        signal.setitimer(signal.ITIMER_REAL, LOOK_S, LOOK_S)
        status = 0
        while True:
            try:
                ended, how = os.wait()
            except ChildProcessError:
                break
            self.tell(self.deaths.collect())  # first: who ended before this one
            self.tell(self.deaths.reaped(ended, exit_code(how)))
            if ended == self.pid:
                status, self.pid = how, self.own
            if self.pid == self.own:
                self.end()
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.tell(self.deaths.collect(last=True))
        for name in self.made:
            try:
                os.unlink(SHM + "/" + name)  # noqa: PTH108
            except OSError:
                continue
        return status


def main(argv: list[str]) -> None:
    """Run it; ends as it ended."""
    status = Reaper(argv[0]).run(argv[1:])
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        # The command has left its core file, where it may; one of ours would mislead.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    sys.exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main(sys.argv[1:])

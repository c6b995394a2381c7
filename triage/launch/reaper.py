"""Runs a command on a node, with everything that it starts kept below it.

In:  the words of the command. Out: its exit code, once nothing of it is left.
Not: imported by triage: its text goes into the job script, for a node has no triage. Standard
     library of any Python 3 only.

A scheduler that tracks processes by their parents loses a daemon that left its parent. Below a
child subreaper none does, so cancelling the job ends it too.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys


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


def main(argv: list[str]) -> None:
    """Run it; ends as it ended."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    pid = os.fork()
    if pid == 0:
        try:
            os.execvp(argv[0], argv)  # noqa: S606
        except OSError as error:
            sys.stderr.write("%s: %s\n" % (argv[0], error.strerror))  # noqa: UP031
        os._exit(127)

    def pass_on(*_: object) -> None:
        try:
            os.kill(pid, signal.SIGTERM)
        except OSError:
            return  # it has ended by itself, and is about to be noticed

    signal.signal(signal.SIGTERM, pass_on)
    status = 0
    while True:
        try:
            ended, how = os.wait()
        except ChildProcessError:
            break
        if ended == pid:
            status = how
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            pid = os.getpid()
        if pid == os.getpid():
            for other in below(pid):
                try:
                    os.kill(other, signal.SIGKILL)
                except OSError:
                    continue
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    sys.exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main(sys.argv[1:])

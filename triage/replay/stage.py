"""What each process of a launch may touch: its voice, its turn, and its place in the system.

In:  a clock that runs `speed` times faster than the script's.
Out: marked lines on standard error, turns handed over pipes, children that die with the parent.
Not: the order of things (script.py) or what main does about a death (cast.py).

Every line carries the mark `simulated | `: nobody can take it for a real log.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import time
from collections.abc import Callable, Sequence

MARK = "simulated | "
PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
ORPHAN_LIFE_S = 120  # so that a test that forgets it leaves nothing for long


class Clock:
    """Time of the script: it runs `speed` times faster than the wall's."""

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self.started_s = time.monotonic()
        self.epoch_s = time.time()

    def wait_until(self, at: float) -> None:
        """Sleep until the script's second `at`; return at once if it is over."""
        left = self.started_s + at / self.speed - time.monotonic()
        if left > 0:
            time.sleep(left)

    def now(self) -> float:
        """The script's second that it is now."""
        return (time.monotonic() - self.started_s) * self.speed

    def since(self, at: float) -> float:
        """Seconds of the wall's time since the script's second `at`."""
        return max(0.0, time.monotonic() - self.started_s - at / self.speed)

    def stamp(self, at: float) -> str:
        """The date and time of the script's second `at`, as SGLang prints it."""
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.epoch_s + at))


def say(text: str) -> None:
    """Write the text, each line marked, in one piece where the pipe allows it."""
    raw = "".join(f"{MARK}{line}\n" for line in text.split("\n")).encode()
    try:
        while raw:
            raw = raw[os.write(2, raw) :]
    except BrokenPipeError:
        os._exit(1)


class Turns:
    """One pipe a process: who reads a byte from its own pipe may act."""

    def __init__(self, players: Sequence[int]) -> None:
        self.pipes = {player: os.pipe() for player in players}

    def give(self, player: int) -> None:
        """Let this player act."""
        os.write(self.pipes[player][1], b".")

    def take(self, player: int, others: Sequence[int] = ()) -> int | None:
        """Wait for the turn; or, sooner, for one of the `others` (descriptors) to be readable."""
        mine = self.pipes[player][0]
        ready = select.select([mine, *others], [], [])[0]
        # A death that is known goes first: a dead rank hands no turn on.
        for other in others:
            if other in ready:
                return other
        os.read(mine, 1)
        return None


def fork(name: str, body: Callable[[], None]) -> int:
    """Run `body` in a child that dies with this process; the child's pid.

    The kernel keeps 15 bytes of the name, as `ps -o comm` shows it.
    """
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)
    # As in SGLang a terminal's Ctrl-C is the launcher's business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    try:
        body()
    finally:
        os._exit(1)


def leave_orphan() -> None:
    """Start a daemon in a session of its own, which outlives the launch; say its pid."""
    if os.fork():
        os.wait()
        return
    os.setsid()
    pid = os.fork()
    if pid:
        say(f"triage.replay: orphan pid={pid}")
        os._exit(0)
    signal.alarm(ORPHAN_LIFE_S)
    while True:
        signal.pause()


def die(name: str) -> None:
    """End this process by the signal of that name, without a core file."""
    import resource  # noqa: PLC0415  only the dying need it

    number = signal.Signals[name]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    time.sleep(1)

"""Where each process of a launch stands, read from outside and while it lives.

In:  PIDs, how long it may take. Out: one text: for each process its state, where in the kernel it
     waits, and the Python stacks; where there are none, what was tried and what it said.
Not: redacting (the caller does), or judging what it says.

py-spy of a tree with `--json --subprocesses` tells of the parent alone, so each process is read on
its own, several at once. A process that is stopped, traced or stuck in the kernel cannot be read
by py-spy's usual way, which would wait for it: then it is read as it runs (`--nonblocking`), at
last by pystack, if that is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from triage.launch import tree

HANG_S = 20.0  # for all processes of a silent launch
_DUMP_S = 5.0
_LAST_S = 0.3  # less than this is too little to start another program
_AT_ONCE = 8
_SAID = 300
_NOT_SEIZED = "DTt"  # states in which a tracer would wait: in the kernel, stopped, traced


class Dumps:
    """Reads the stacks of a launch in the background, once.

    Args:
        read: Reads them within some seconds.
    """

    def __init__(self, read: Callable[[float], str]) -> None:
        self._reader = read
        self._thread: threading.Thread | None = None
        self._text = ""

    @property
    def running(self) -> bool:
        """Whether it is at it."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self, within_s: float) -> None:
        """Start reading; it is done within this time. A second call does nothing."""
        if self._thread is not None:
            return
        self._thread = threading.Thread(
            target=self._read, args=(within_s,), name="triage-stacks", daemon=True
        )
        self._thread.start()

    def text(self, within_s: float) -> str:
        """What was read, waiting for at most so long; "" if that is nothing."""
        if self._thread is not None:
            self._thread.join(within_s)
        return self._text

    def _read(self, within_s: float) -> None:
        self._text = self._reader(within_s)


def dump(pids: Iterable[int], *, within_s: float = HANG_S) -> str:
    """The stacks of these processes; one that cannot be read is named with what was tried."""
    deadline = time.monotonic() + within_s
    pids = tuple(pids)
    if not pids:
        return ""
    readers = _readers()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return "\n".join(pool.map(lambda pid: _describe(pid, readers, deadline), pids))


@cache
def _readers() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Name and words of each way to read a stack, the surest first; the PID comes last."""
    found: list[tuple[str, tuple[str, ...]]] = []
    if spy := _program("py-spy"):
        found.append(("py-spy", (spy, "dump", "--pid")))
        found.append(("py-spy --nonblocking", (spy, "dump", "--nonblocking", "--pid")))
    if pystack := _program("pystack"):
        found.append(("pystack --no-block", (pystack, "remote", "--no-block")))
    return tuple(found)


def _program(name: str) -> str:
    """The program beside our Python, else the one on PATH, else nothing."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name) or ""


def _describe(pid: int, readers: Sequence[tuple[str, tuple[str, ...]]], deadline: float) -> str:
    proc = tree.look(pid)
    if proc is None or not proc.alive:
        return f"== process {pid}: ended\n"
    words = _read(pid, "cmdline").replace("\0", " ").strip()
    head = (
        f"== process {pid} ({proc.comm}), parent {proc.parent}, state {proc.state}, "
        f"waits in {_read(pid, 'wchan') or '?'}\n{words}\n"
    )
    return head + _stack(pid, proc.state, readers, deadline)


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:
        return ""


def _stack(
    pid: int, state: str, readers: Sequence[tuple[str, tuple[str, ...]]], deadline: float
) -> str:
    """The stack as the first way that works tells it, behind what the others said."""
    if not readers:
        return "no stack: py-spy is not installed\n"
    tried = []
    for name, words in readers:
        if name == "py-spy" and state in _NOT_SEIZED:
            tried.append(f"{name}: left out, as the process is in state {state}")
            continue
        left = deadline - time.monotonic()
        if left < _LAST_S:
            tried.append(f"{name}: no time was left")
            break
        said, text = _run([*words, str(pid)], min(_DUMP_S, left))
        if text:
            return "".join(f"tried {one}\n" for one in tried) + text
        tried.append(f"{name}: {said}")
        if (proc := tree.look(pid)) is None or not proc.alive:
            tried.append("the process has ended")
            break
    kernel = _read(pid, "stack").strip()
    return f"no stack: {'; '.join(tried)}\n" + (f"in the kernel:\n{kernel}\n" if kernel else "")


def _run(words: Sequence[str], within_s: float) -> tuple[str, str]:
    """What it said instead of a stack, and the stack."""
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=within_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"nothing for {within_s:.1f} s", ""
    except OSError as error:
        return str(error), ""
    if done.returncode == 0 and done.stdout.strip():
        return "", done.stdout
    return " ".join(done.stderr.split())[:_SAID] or f"exit {done.returncode}", ""

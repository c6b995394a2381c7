"""Where every process of a silent launch stands, before it is ended.

In:  PIDs. Out: one text: state, kernel function, command line and Python stack of each.
Not: naming the cause of the hang.

Source: py-spy 0.4 dumps one process a call (`--json --subprocesses` gives the parent only);
it fails on a stopped or traced process, where `--nonblocking` still works, and it can hang on
one in uninterruptible sleep.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from triage.launch import tree

_DUMP_S = 5.0
_AT_ONCE = 8


def dump(pids: Iterable[int]) -> str:
    """The stacks of these processes; one that cannot be read is named with the reason."""
    program = _py_spy()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return "\n".join(pool.map(lambda pid: _describe(pid, program), pids))


def _py_spy() -> str:
    """The py-spy beside our Python, else the one on PATH, else nothing."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else shutil.which("py-spy") or ""


def _describe(pid: int, program: str) -> str:
    proc = tree.look(pid)
    if proc is None:
        return f"== process {pid}: ended\n"
    words = _read(pid, "cmdline").replace("\0", " ").strip()
    head = (
        f"== process {pid} ({proc.comm}), parent {proc.parent}, state {proc.state}, "
        f"waits in {_read(pid, 'wchan') or '?'}\n{words}\n"
    )
    return head + _stack(pid, program)


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:
        return ""


def _stack(pid: int, program: str) -> str:
    if not program:
        return "no stack: py-spy is not installed\n"
    why = ""
    for options in ((), ("--nonblocking",)):
        try:
            done = subprocess.run(
                [program, "dump", "--pid", str(pid), *options],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_DUMP_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            why = f"py-spy gave nothing for {_DUMP_S:.0f} s"
            continue
        except OSError as error:
            return f"no stack: {error}\n"
        if done.returncode == 0:
            return done.stdout
        why = " ".join(done.stderr.split())
    return f"no stack: {why}\n"

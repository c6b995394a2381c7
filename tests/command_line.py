"""What tests of the command line share."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from triage.cli import run

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def within(words: list[str], stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    """One command line within this process, as a process of its own would give it."""
    before, held = (sys.stdin, sys.stdout, sys.stderr), locks()
    streams = [io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8") for raw in (stdin, b"", b"")]
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        code = run(words)
        for stream in streams[1:]:
            stream.flush()
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        for descriptor in locks() - held:  # a session is claimed until its process ends
            os.close(descriptor)
    out, err = (stream.buffer.getvalue() for stream in streams[1:])
    return subprocess.CompletedProcess(words, code, out, err)


def locks() -> set[int]:
    """Descriptors of this process that are open for the lock of a session."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if descriptor.readlink().name == "lock":
                found.add(int(descriptor.name))
    return found


def typed(
    capsys: pytest.CaptureFixture[str], *words: str | Path
) -> subprocess.CompletedProcess[str]:
    """The same within this process, for what starts nothing: a tenth of the time."""
    code = run([str(word) for word in words])
    shown = capsys.readouterr()
    return subprocess.CompletedProcess(list(words), code, shown.out, shown.err)


def is_an_error(done: subprocess.CompletedProcess[str], code: int, pattern: str) -> None:
    """The process printed one sentence and one hint, nothing on stdout, and ended with `code`."""
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    lines = [
        line for line in done.stderr.splitlines() if not line.startswith(("note: ", "session: "))
    ]
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    assert re.search(pattern, errors[0].removeprefix("error: ")), errors[0]
    assert lines[-1].startswith("  try: "), done.stderr

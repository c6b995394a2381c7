"""What tests of the command line share."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from triage.cli import run

Run = Callable[..., "subprocess.CompletedProcess[str]"]


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

"""The command line within the test's own process: what a start of Python costs is saved."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest
from command_line import Run

import triage.cli

# A copy of the package's own module: the module of the command `run` takes the name of its
# function `run` once somebody has imported it.
SPEC = importlib.util.spec_from_file_location("triage_command_line", triage.cli.__file__)
assert SPEC is not None
assert SPEC.loader is not None
COPY = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(COPY)


def inside(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run triage here; the answer's text, the talk, the code."""

    def command(*words: str | Path) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        code = COPY.run([str(word) for word in words])
        shown = capsys.readouterr()
        return subprocess.CompletedProcess([*map(str, words)], code, shown.out, shown.err)

    return command

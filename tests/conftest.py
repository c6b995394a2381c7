"""The command line as a user meets it: a process, its two streams, its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Run
from hypothesis import settings

# Real launches and a folder that fills up; a stand-in for the driver's library; the founding case.
pytest_plugins = ["launch_bench", "fake_gpus", "founding_case"]

ROOT = Path(__file__).parents[1]
# A busy machine is no failure: an example may take as long as it does.
settings.register_profile(
    "triage", settings.get_profile(settings.get_current_profile_name()), deadline=None
)
settings.load_profile("triage")


@pytest.fixture
def triage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run triage in an empty folder; the answer's text, the talk, the code."""
    monkeypatch.chdir(tmp_path)

    def run(
        *words: str | Path, stdin: bytes = b"", timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "triage", *map(str, words)],
            cwd=tmp_path, input=stdin, capture_output=True, check=False, timeout=timeout,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
        shown = subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )
        assert "Traceback (most recent call last)" not in shown.stderr, shown.stderr
        return shown

    return run

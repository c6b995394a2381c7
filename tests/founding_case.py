"""The founding case, run once for all tests of the command line that look at it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def founding(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its session, bisected for every cause, confirmed and written up; to be looked at only."""
    folder = tmp_path_factory.mktemp("founding")
    kimi = str(ROOT / "recipes/kimi-k2.6-b300.yaml")
    for words in (
        ["bisect", kimi, "--engine", "replay", "--speed", "400", "--session", "s"],
        ["confirm", "s"],
        ["runbook", "s"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "triage", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    return folder / "s"

"""Each benchmark is a program: run as a module it does something, and says how it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["bench", "bench.search", "bench.search.nodes", "bench.fuzz"])
def test_a_benchmark_says_how_it_is_used(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", name, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage:"), "nothing is run where the module has no entry point"

"""The founding recipe on each target, simulated engine: only --target differs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from parts import place, require

from triage.core.launch import Container

pytestmark = pytest.mark.parts
ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes" / "kimi-k2.6-b300.yaml"
KINDS = ("process", "systemd", "container", "slurm")


@pytest.mark.parametrize("kind", KINDS)
def test_the_founding_case_comes_out_alike_on_each_target(kind: str, tmp_path: Path) -> None:
    require(kind)
    recipe = tmp_path / "recipe.yaml"
    text = RECIPE.read_text().replace("landscape: ../", f"landscape: {ROOT}/")
    where = place(kind)
    words = list(where.run) if isinstance(where, Container) else ["docker", "run", "no/image"]
    lines = f"  container: {json.dumps(words)}\n  nodes: 1\n  cwd: {json.dumps(str(tmp_path))}\n"
    recipe.write_text(text.replace("  target: process\n", f"  target: process\n{lines}").replace(
        "  cwd: .\n", ""))  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "triage", "bisect", str(recipe), "--engine", "replay",
         "--target", kind, "--session", str(tmp_path / "session"), "--json"],
        capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    sets = {tuple(sorted(one["items"])): one["cause"] for one in found["sets"]}
    assert sets == {
        ("ep-size",): "nonetype-capture-batch-field",
        ("enable-nccl-nvls", "ep-size"): "cublas-mla-absorb-bmm",
        ("enable-flashinfer-allreduce-fusion",): "flashinfer-allreduce-rendezvous-hang",
    }
    confirmed = subprocess.run(
        [sys.executable, "-m", "triage", "confirm", str(tmp_path / "session"), "--json"],
        capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert confirmed.returncode == 0, confirmed.stderr[-2000:]

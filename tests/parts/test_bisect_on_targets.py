"""The founding recipe as it is shipped, on each target, simulated engine: only --target differs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from parts import docker_here, require

pytestmark = pytest.mark.parts
ROOT = Path(__file__).parents[2]
KINDS = ("process", "systemd", "container", "slurm")


@pytest.mark.parametrize("kind", KINDS)
def test_the_founding_case_comes_out_alike_on_each_target(kind: str, tmp_path: Path) -> None:
    require(kind)
    session = str(tmp_path / "session")
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    if kind == "container":
        env |= docker_here(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "triage", "bisect", "recipes/kimi-k2.6-b300.yaml",
         "--engine", "replay", "--target", kind, "--session", session, "--json"],
        capture_output=True, text=True, timeout=400, check=False, cwd=ROOT, env=env,
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
        [sys.executable, "-m", "triage", "confirm", session, "--json"],
        capture_output=True, text=True, timeout=300, check=False, cwd=ROOT, env=env,
    )  # fmt: skip
    assert confirmed.returncode == 0, confirmed.stderr[-2000:]

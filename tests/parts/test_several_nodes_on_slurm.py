"""Trials of one search on two allocations at the same time, by a real scheduler."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from parts import require

pytestmark = pytest.mark.parts
ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes" / "kimi-k2.6-b300.yaml"


def words(folder: Path, speed: str) -> list[str]:
    return [sys.executable, "-m", "triage", "bisect", str(RECIPE), "--target", "slurm",
            "--engine", "replay", "--speed", speed, "--nodes", "2",
            "--session", str(folder / "session"), "--json"]  # fmt: skip


def begin(folder: Path, speed: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words(folder, speed), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def running() -> list[str]:
    done = subprocess.run(
        ["squeue", "-h", "-t", "R,CG,PD", "-o", "%j %N"], capture_output=True, text=True,
        check=True, timeout=30,
    )  # fmt: skip
    return [line for line in done.stdout.splitlines() if line.startswith("triage-")]


def stretches(session: Path) -> list[tuple[str, str, str]]:
    """Of each launch its begin and end, by the scheduler's clock, and its node."""
    found = []
    for file in sorted(session.glob("trials/*/exit.json")):
        said = " ".join(json.loads(file.read_text())["said"])
        told = dict(re.findall(r"(StartTime|EndTime|NodeList): (\S+)", said))
        found.append((told["StartTime"], told["EndTime"], told["NodeList"]))
    return found


def test_two_allocations_at_the_same_time_give_the_answer_of_one(tmp_path: Path) -> None:
    require("slurm")
    process, both = begin(tmp_path, "200"), False
    deadline = time.monotonic() + 240
    while process.poll() is None and time.monotonic() < deadline:
        jobs = running()
        both = both or len({job.split()[-1] for job in jobs if len(job.split()) > 1}) == 2
        time.sleep(0.1)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err[-2000:]
    found: dict[str, Any] = json.loads(out)
    assert both, "two jobs on two nodes were never seen at the same time"
    assert {tuple(sorted(one["items"])): one["cause"] for one in found["sets"]} == {
        ("ep-size",): "nonetype-capture-batch-field",
        ("enable-nccl-nvls", "ep-size"): "cublas-mla-absorb-bmm",
        ("enable-flashinfer-allreduce-fusion",): "flashinfer-allreduce-rendezvous-hang",
    }
    assert running() == []
    assert len({node for _, _, node in stretches(tmp_path / "session")}) == 2


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_job_is_left_when_the_search_is_ended(how: signal.Signals, tmp_path: Path) -> None:
    require("slurm")
    process = begin(tmp_path, "20")
    deadline = time.monotonic() + 60
    while len(running()) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(1.0)
    process.send_signal(how)
    process.communicate(timeout=60)
    deadline = time.monotonic() + 30
    while running() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert running() == []
    if how is signal.SIGINT:
        assert process.returncode == 130
        return
    last = begin(tmp_path, "400")
    out, err = last.communicate(timeout=240)
    assert last.returncode == 0, err[-2000:]
    assert {one["flag"] for one in json.loads(out)["drop"]} == {
        "ep-size", "enable-flashinfer-allreduce-fusion",
    }  # fmt: skip

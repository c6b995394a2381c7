"""The probes with the engine's torch, on the CPU: the code that runs on a GPU, but for the device."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".sglang/bin/python"
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not PYTHON.exists(), reason="make sglang-cpu"),
]
SHAPES = {
    "mla-absorb-bmm": ["headroom_mib=[256, 16]", "heads=16"],
    "moe-kernel": ["experts=16", "hidden=256", "intermediate=128", "tp=4", "tokens=[1, 8]"],
}


def shown(name: str, *settings: str) -> dict[str, Any]:
    words = [word for setting in settings for word in ("--set", setting)]
    done = subprocess.run(
        [sys.executable, "-m", "triage", "probe", name, "--json", "--python", PYTHON, *words],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert isinstance(made, dict)
    return made


@pytest.mark.parametrize(
    ("name", "passed", "skipped"),
    [
        ("graph-capture", 1, 5), ("cublas-handle", 4, 2), ("mla-absorb-bmm", 4, 2),
        ("moe-kernel", 4, 0),
    ],
)  # fmt: skip
def test_what_exists_on_the_cpu_passes_and_the_rest_says_so(
    name: str, passed: int, skipped: int
) -> None:
    result = shown(name, *SHAPES.get(name, ()))
    outcomes = [e["outcome"] for e in result["experiments"]]
    assert outcomes.count("passed") == passed, result
    assert outcomes.count("skipped") == skipped, result
    assert len(outcomes) == passed + skipped
    assert result["device"] == "cpu"
    assert result["findings"] == []
    assert "says nothing about a GPU" in result["meaning"][0]
    assert result["versions"]["torch"]


def test_gloo_adds_up() -> None:
    result = shown("allreduce", "kib=[8, 64]")
    assert result["experiments"][0]["outcome"] == "passed"
    assert len(result["experiments"][0]["facts"]["seconds"]) == 2


def test_ranks_meet_and_one_that_never_comes_ends_in_a_time_out() -> None:
    result = shown("rendezvous")
    outcome = {e["name"]: e["outcome"] for e in result["experiments"]}
    assert outcome["store"] == "passed"
    assert outcome["missing rank"] == "failed"
    assert "Two processes of this machine meet in a store." in result["meaning"]


def test_a_device_that_is_not_there_is_an_answer() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "triage", "probe", "graph-capture", "--device", "cuda", "--python", PYTHON],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 4
    assert "no GPU answers" in done.stderr


def test_the_recorder_goes_through_every_provocation_without_a_gpu(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import record_gpu_fixtures as tool
    finally:
        sys.path.pop(0)
    some = [
        one for one in tool.PROVOCATIONS if one.name in ("cublas-in-cold-capture", "segv-native")
    ]
    found = tool.record(str(PYTHON), tmp_path, provocations=some, probes=(), say=lambda _: None)
    assert found["provocations"]["segv-native"]["exit_code"] == -11
    log = (tmp_path / "cublas-in-cold-capture.log").read_text()
    assert "Found no NVIDIA driver" in log
    assert found["provocations"]["cublas-in-cold-capture"]["provoked"] == []

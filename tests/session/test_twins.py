"""A launch with a smaller model counts only where it fails as the launch in full did."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Run

pytestmark = pytest.mark.real
BOOM = {
    "ends": "exception", "phase": "scheduler-init", "ranks": ["all"], "exception": "ValueError",
    "message": "To use priority scheduling, schedule_policy must be 'fcfs' or 'lof'.",
    "frames": [{"file": "managers/schedule_policy.py", "line": 120, "function": "validate"}],
}  # fmt: skip


def search(folder: Path, *, masked: bool) -> Path:
    """Three flags; two of them fail together, late. `masked`: not with dummy weights."""
    (folder / "model").mkdir()
    (folder / "model/config.json").write_text(
        json.dumps({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2})
    )
    names = ["enable-mixed-chunk", "enable-metrics", "log-requests"]
    items: dict[str, Any] = dict.fromkeys(names, True) | {"load-format": "dummy"}
    entries = []
    for bits in range(16):
        when = [name for n, name in enumerate(items) if bits >> n & 1]
        bad = set(names[:2]) <= set(when) and not (masked and "load-format" in when)
        ending = BOOM if bad else {"ends": "starts"}
        entries.append({"when": when, "provenance": "assumed", "source": "made up", **ending})
    landscape = {
        "schema": "triage.landscape/1", "name": "twins",
        "flags": [
            {"flag": "model-path", "neutral": True},
            {"flag": "device", "neutral": True},
            {"flag": "host", "default": "127.0.0.1", "neutral": True},
            {"flag": "port", "kind": "int", "default": 30000, "neutral": True},
            {"flag": "load-format", "default": "auto"},
            *({"flag": name, "kind": "switch"} for name in names),
        ],
        "items": items,
        "seconds": {"process-spawn": 1, "weight-load": 1},
        "entries": entries,
    }  # fmt: skip
    (folder / "l.yaml").write_text(json.dumps(landscape))
    (folder / "r.yaml").write_text(
        "schema: triage.recipe/1\nname: twins\nlaunch:\n"
        f"  command: [{sys.executable}, -m, triage.replay, --landscape, l.yaml, --speed, '50', --]\n"
        "  patience: {silent: 20s, total: 60s}\n"
        "baseline: {flags: {model-path: model, device: cpu}}\n"
        f"wanted: [{', '.join(f'{{flag: {name}}}' for name in names)}]\n"
        "goal: all\nrungs: [twin, full]\n"
    )
    return folder / "r.yaml"


def journal(session: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (session / "journal.jsonl").read_text().splitlines()]


def test_a_twin_that_was_held_against_a_launch_answers_for_others(
    triage: Run, tmp_path: Path
) -> None:
    path = search(tmp_path, masked=False)
    done = triage("bisect", path, "--session", tmp_path / "s", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [set(one["items"]) for one in found["sets"]] == [
        {"enable-mixed-chunk", "enable-metrics"}
    ]
    trials = journal(tmp_path / "s")
    twins = [t for t in trials if t["rung"] == "twin"]
    assert twins, [(t["items"], t["rung"], t["seen"]) for t in trials]
    failures = {t["signature"] for t in trials if t["seen"] == "fails"}
    assert len(failures) == 1
    assert {t["rung"] for t in trials if t["seen"] == "starts"} == {"full"}, "only a launch starts"
    assert all((tmp_path / f"s/trials/{t['number']:03d}/server.log").exists() for t in twins)
    assert found["spent"]["twins"] == len(twins)
    assert "smaller model: --load-format dummy; it does not show weights" in done.stderr
    proof = trials[found["proof"] - 1]
    assert (proof["rung"], proof["seen"]) == ("full", "starts")


def test_a_twin_that_does_not_fail_as_the_launch_did_is_not_used(
    triage: Run, tmp_path: Path
) -> None:
    path = search(tmp_path, masked=True)
    done = triage("bisect", path, "--session", tmp_path / "s", "--json")
    assert done.returncode == 0, done.stderr
    assert {t["rung"] for t in journal(tmp_path / "s")} == {"full"}
    assert "shows starts instead" in done.stderr
    found = json.loads(done.stdout)
    assert [set(one["items"]) for one in found["sets"]] == [
        {"enable-mixed-chunk", "enable-metrics"}
    ]

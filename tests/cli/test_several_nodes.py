"""`triage bisect --nodes`: real launches at the same time, their interruptions, what is refused."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, is_an_error, typed
from traces import alive, children_of, gone

ROOT = Path(__file__).parents[2]
KIMI = ROOT / "recipes/kimi-k2.6-b300.yaml"
FAST = ("--engine", "replay", "--speed", "400")
CPU = ROOT / "recipes/tiny-cpu-eight-flags.yaml"


def journal(session: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (session / "journal.jsonl").read_text().splitlines()]


@pytest.mark.real
def test_three_nodes_find_what_one_finds(triage: Run, tmp_path: Path, founding: Path) -> None:
    done = triage("bisect", KIMI, *FAST, "--nodes", "3", "--session", "s", "--json")
    assert done.returncode == 0, done.stderr
    found, alone = (
        json.loads(done.stdout),
        json.loads((founding / "recommendation.json").read_text()),
    )
    for key in ("keep", "drop", "change", "add"):
        assert [(c["flag"], c["value"]) for c in found[key]] == [
            (c["flag"], c["value"]) for c in alone[key]
        ]
    sets = [{tuple(s["items"]): s["cause"] for s in one["sets"]} for one in (found, alone)]
    assert sets[0] == sets[1]
    trials = journal(tmp_path / "s")
    assert len({tuple(t["items"]) for t in trials}) == len(trials)
    for trial in trials:
        log = tmp_path / f"s/trials/{trial['number']:03d}/server.log"
        ports = {w for w in log.read_text(errors="replace").split() if w.startswith("port=")}
        assert len(ports) <= 1, "each launch has a log of its own"


@pytest.mark.real
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_search_that_is_ended_leaves_no_launch_and_goes_on(
    how: signal.Signals, triage: Run, tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "triage", "bisect", str(KIMI), "--engine", "replay",
             "--speed", "60", "--nodes", "2", "--session", "s"]  # fmt: skip
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not all((tmp_path / f"s/trials/{n:03d}/server.log").exists() for n in (3, 4)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    while len(ours := children_of(process.pid)) < 4:  # two guards and two launchers
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(how)
    _, talk = process.communicate(timeout=30)
    if how is signal.SIGINT:
        assert process.returncode == 130
        assert "Traceback" not in talk
        assert alive(ours) == []
    gone(ours)
    had = journal(tmp_path / "s")
    done = triage("bisect", KIMI, *FAST[:2], "--speed", "400", "--nodes", "2", "--session", "s")
    assert done.returncode == 0, done.stderr
    trials = journal(tmp_path / "s")
    assert trials[: len(had)] == had
    assert len({tuple(t["items"]) for t in trials}) == len(trials)
    assert len({t["number"] for t in trials}) == len(trials)


def test_launches_that_would_share_gpus_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    done = typed(capsys, "bisect", KIMI, "--nodes", "2", "--dry-run")
    is_an_error(done, 2, "2 launches at the same time would share this machine's GPUs")
    mine = tmp_path / "r.yaml"
    text = KIMI.read_text().replace(
        "  target: process\n", "  target: process\n  devices: [[0, 1], [2, 3]]\n"
    )
    mine.write_text(text)
    assert typed(capsys, "bisect", mine, "--nodes", "2", "--dry-run").returncode == 0
    is_an_error(
        typed(capsys, "bisect", mine, "--nodes", "3", "--dry-run"), 2, "devices for 2 launches"
    )
    mine.write_text(text.replace("[2, 3]", "[1, 2]"))
    is_an_error(typed(capsys, "bisect", mine, "--dry-run"), 2, "GPUs of its own")


def test_an_engine_on_the_cpu_may_be_launched_twice(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(capsys, "bisect", CPU, "--nodes", "2", "--dry-run").returncode == 0
    done = typed(capsys, "bisect", CPU, "--nodes", "2", "--rungs", "twin,full", "--dry-run")
    is_an_error(done, 2, "smaller model")

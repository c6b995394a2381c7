"""A search of 25 flags that is killed ten times, at any moment, and goes on."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.real, pytest.mark.e2e_full]
FLAGS = [f"flag-{chr(97 + i)}" for i in range(25)]
KILLS = 10
FAULTS = [(["flag-c"], "graph-capture", "capture"), (["flag-f", "flag-t"], "weight-load", "load")]


def write_recipe(folder: Path) -> Path:
    """25 switches; one breaks graph capture, a pair breaks loading, everything else starts."""
    about = {"provenance": "assumed", "source": "made up", "more": True}
    entries = [
        {"when": when, "ends": "exception", "phase": phase, "exception": "ValueError", **about,
         "message": f"no {what}", "frames": [{"file": f"{what}.py", "line": 1, "function": what}]}
        for when, phase, what in reversed(FAULTS)
    ]  # fmt: skip
    landscape = {
        "schema": "triage.landscape/1",
        "name": "many",
        "flags": [
            {"flag": "model-path", "neutral": True},
            {"flag": "host", "default": "127.0.0.1", "neutral": True},
            {"flag": "port", "kind": "int", "default": 30000, "neutral": True},
            *({"flag": flag, "kind": "switch"} for flag in FLAGS),
        ],
        "items": dict.fromkeys(FLAGS, True),
        "seconds": {"weight-load": 1, "graph-capture": 1},
        "entries": [*entries, {"when": [], "ends": "starts", **about}],
    }
    (folder / "l.yaml").write_text(json.dumps(landscape))
    recipe = folder / "r.yaml"
    wanted = "".join(f"  - {{flag: {flag}, weight: {1 + i % 5}}}\n" for i, flag in enumerate(FLAGS))
    recipe.write_text(
        "schema: triage.recipe/1\nname: many\nengine: replay\nlandscape: l.yaml\nspeed: 1000\n"
        f"baseline: {{flags: {{model-path: /m}}}}\nwanted:\n{wanted}"
        "budget: {trials: 60, hours: 10}\n"
    )
    return recipe


def begin(recipe: Path, session: str, nodes: int = 1) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "triage", "bisect", str(recipe), "--session", session, "--json",
             "--nodes", str(nodes)]  # fmt: skip
    return subprocess.Popen(
        words, cwd=recipe.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def kill_and_go_on(recipe: Path, nodes: int) -> tuple[int, str]:
    """Kills, and the answer of the run after the last one."""
    dice, kills = random.Random("ten kills"), 0
    while kills < KILLS:
        process = begin(recipe, "killed", nodes)
        time.sleep(dice.uniform(0.2, 2.5))
        if process.poll() is not None:  # done before it could be killed
            process.communicate()
            break
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += 1
    again, err = (last := begin(recipe, "killed", nodes)).communicate(timeout=300)
    assert last.returncode == 0, err
    return kills, again


def answer(out: str) -> dict[str, Any]:
    found = json.loads(out)
    return {key: found[key] for key in ("keep", "drop", "claim", "sets", "proof")}


def launched(session: Path) -> list[Any]:
    lines = (session / "journal.jsonl").read_text().splitlines()
    return [(one["items"], one["seen"], one["phase"]) for one in map(json.loads, lines)]


def test_ten_kills_cost_no_more_than_the_launches_that_were_in_flight(tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path)
    out, err = (whole := begin(recipe, "whole")).communicate(timeout=300)
    assert whole.returncode == 0, err

    kills, again = kill_and_go_on(recipe, 1)
    assert answer(again) == answer(out)
    # What was lost was launched anew under its number: so each kill cost the one in flight.
    assert launched(tmp_path / "killed") == launched(tmp_path / "whole")
    assert kills >= KILLS // 2
    assert {one["flag"] for one in json.loads(again)["drop"]} == {"flag-c", "flag-f"}


def test_ten_kills_of_a_search_on_two_nodes_lose_the_launches_in_flight_only(
    tmp_path: Path,
) -> None:
    recipe = write_recipe(tmp_path)
    out, err = (whole := begin(recipe, "whole", 2)).communicate(timeout=300)
    assert whole.returncode == 0, err
    kills, again = kill_and_go_on(recipe, 2)
    assert kills >= KILLS // 2
    # Which answer comes first is chance, and with it what is asked next: the answer is the same.
    last, first = json.loads(again), json.loads(out)
    assert (last["reason"], last["level"]) == (first["reason"], first["level"])
    for key in ("keep", "drop"):
        assert [(c["flag"], c["value"]) for c in last[key]] == [
            (c["flag"], c["value"]) for c in first[key]
        ]
    trials = launched(tmp_path / "killed")
    assert len({tuple(items) for items, _, _ in trials}) == len(trials), "none is launched twice"
    # A kill leaves no trace in the journal, so the search is as long as any other.
    assert len(trials) <= len(launched(tmp_path / "whole")) + KILLS

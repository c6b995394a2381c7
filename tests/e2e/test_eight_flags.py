"""Eight flags with two pairs that exclude each other, on real SGLang: the search and one flag at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from triage.core.trials import Entry, Seen, Trial
from triage.session.prepare import prepare
from triage.session.trial import entry_of, launch_once

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes/tiny-cpu-eight-flags.yaml"
# Of each pair the flag that is wanted less: what has to go, as the engine's own rules say.
GOES = {"chunked-prefill-size", "enable-dynamic-batch-tokenizer"}
pytestmark = pytest.mark.e2e_full


def bisected(session: Path, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "triage", "bisect", str(RECIPE), "--session", str(session), "--json",
         *words],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False, timeout=1500,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def one_flag_at_a_time(folder: Path) -> tuple[int, set[str]]:
    """Launches, and what is left out, if the flag that is wanted most is added first."""
    search = prepare(RECIPE)
    problem = search.recipe.problem
    kept: frozenset[str] = frozenset()
    entries: list[Entry] = []
    for item in sorted(problem.items, key=lambda item: -item.weight):
        trial = Trial(items=kept | {item.key}, why="one more flag")
        number = len(entries) + 1
        place = folder / f"{number:03d}"
        place.mkdir(parents=True)
        result = launch_once(
            search.setup, problem.config(trial.items), place, unset=(), say=lambda _: None
        )
        entries.append(entry_of(number, trial, problem, result, entries))
        if entries[-1].seen is Seen.STARTS:
            kept = trial.items
    return len(entries), set(problem.keys() - kept)


def test_eight_flags_of_the_real_engine_take_fewer_launches_than_one_at_a_time(
    tmp_path: Path,
) -> None:
    asked = bisected(tmp_path / "asked")
    launched = bisected(tmp_path / "launched", "--rungs", "full")
    linear, left_out = one_flag_at_a_time(tmp_path / "linear")
    for found in (asked, launched):
        assert found["reason"] == "found"
        assert {choice["flag"] for choice in found["drop"]} == GOES
        assert found["proof"]
    # The baseline and all that is wanted are launches too, for whoever searches.
    counts = {
        "triage, the engine asked first": asked["spent"]["launches"],
        "triage, launches only": launched["spent"]["launches"],
        "one flag at a time": linear + 2,
    }
    for name, count in counts.items():
        sys.stdout.write(f"{name}: {count} launches\n")
    assert left_out == GOES
    assert counts["triage, the engine asked first"] < counts["one flag at a time"]
    assert counts["triage, launches only"] <= counts["one flag at a time"]

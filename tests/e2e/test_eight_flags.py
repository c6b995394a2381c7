"""Eight flags with two pairs that exclude each other, on real SGLang: the search and one flag at a time.

The long part keeps what it launched in the folder EIGHT_ROWS and goes on there; with EIGHT_TABLE it
writes that file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from triage.core.trials import Seen
from triage.session.prepare import prepare
from triage.session.trial import launch_once

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes/tiny-cpu-eight-flags.yaml"
# Of each pair the flag that is wanted less: what has to go, as the engine's own rules say.
GOES = {"chunked-prefill-size", "enable-dynamic-batch-tokenizer"}
PAIRS = {
    frozenset({"page-size", "chunked-prefill-size"}),
    frozenset({"enable-dynamic-batch-tokenizer", "enable-tokenizer-batch-encode"}),
}
PAGE = """# Eight flags on real SGLang: launches of a search, and of one flag at a time

Written by `make e2e-full` ({date}, commit {commit}): SGLang 0.5.23 on the CPU, a tiny random model, `recipes/tiny-cpu-eight-flags.yaml`. Two pairs of
its eight flags exclude each other; of each pair the one that is wanted less has to go, and nothing else. Every row found that. The baseline and the launch
of all that is wanted are counted where they were launched. This engine refuses both pairs before it loads anything, which is the cheapest sort of failure; one
that shows in graph capture costs each search its whole launch. Two cores with other work beside: the minutes compare rows, and nothing else.

| search | launches | minutes of launches | answers without a launch | keeps (of {wanted:g}) | claim |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Row:
    """One way to search: what it took, and what it found."""

    name: str
    launches: int
    seconds: float
    free: int
    kept: float
    claim: str


def bisected(session: Path, *words: str) -> dict[str, Any]:
    """The answer of a search; one that was made before in this folder gives it again."""
    done = subprocess.run(
        [sys.executable, "-m", "triage", "bisect", str(RECIPE), "--session", str(session), "--json",
         *words],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False, timeout=1500,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["reason"] == "found"
    assert {choice["flag"] for choice in found["drop"]} == GOES
    assert found["proof"]
    return found


def row(name: str, found: dict[str, Any]) -> Row:
    spent = found["spent"]
    claims = {"proved": "proved, if adding a flag never repairs a failure"}
    claim = claims.get(found["level"], found["level"])
    return Row(name, spent["launches"], spent["seconds"], spent["without_launch"],
               found["weight"]["kept"], claim)  # fmt: skip


def one_flag_at_a_time(folder: Path) -> Row:
    """The baseline, all that is wanted, then the flag that is wanted most first, kept if it starts."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "linear.jsonl"
    had = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    search = prepare(RECIPE)
    problem = search.recipe.problem
    kept: frozenset[str] = frozenset()
    order = [item.key for item in sorted(problem.items, key=lambda item: -item.weight)]
    for number, key in enumerate(["", "*", *order]):
        items = problem.keys() if key == "*" else kept | {key} - {""}
        if number == len(had):
            place = folder / f"{number + 1:03d}"
            result = launch_once(search.setup, problem.config(items), place)
            told = {"items": sorted(items), "seen": result.seen.value,
                    "seconds": round(result.capture.seconds, 1)}  # fmt: skip
            had.append(told)
            with file.open("a") as rows:
                rows.write(json.dumps(told) + "\n")
        assert had[number]["items"] == sorted(items), "these rows are of another recipe"
        if key != "*" and had[number]["seen"] == Seen.STARTS.value:
            kept = frozenset(items)
    assert problem.keys() - kept == GOES
    return Row("one flag at a time, the most wanted first", len(had),
               sum(one["seconds"] for one in had), 0, problem.weight(kept), "none")  # fmt: skip


@pytest.mark.e2e
def test_eight_flags_with_two_real_interactions_are_searched_right(tmp_path: Path) -> None:
    found = bisected(tmp_path / "asked")
    assert {frozenset(one["items"]) for one in found["sets"]} >= PAIRS
    assert found["level"] == "proved"
    sys.stdout.write(f"eight flags: {found['spent']['launches']} launches\n")
    assert found["spent"]["launches"] <= 4


@pytest.mark.e2e_full
def test_eight_flags_take_fewer_launches_than_one_at_a_time(tmp_path: Path) -> None:
    kept = os.environ.get("EIGHT_ROWS")
    folder = Path(kept).absolute() if kept else tmp_path
    rows = [
        row("triage, the engine asked first", bisected(folder / "asked")),
        row("triage, launches only", bisected(folder / "launched", "--rungs", "full")),
        one_flag_at_a_time(folder / "linear"),
    ]
    for one in rows:
        sys.stdout.write(f"{one.name}: {one.launches} launches, {one.seconds / 60:.1f} min\n")
    asked, launched, linear = rows
    assert asked.launches < linear.launches
    assert launched.launches <= linear.launches
    if table := os.environ.get("EIGHT_TABLE"):
        git = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
        wanted = prepare(RECIPE).recipe.problem
        page = PAGE.format(
            date=datetime.now(UTC).date(), commit=commit, wanted=wanted.weight(wanted.keys())
        )
        for one in rows:
            page += (
                f"| {one.name} | {one.launches} | {one.seconds / 60:.1f} | {one.free} | "
                f"{one.kept:g} | {one.claim} |\n"
            )
        Path(table).write_text(page)

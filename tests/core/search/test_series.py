"""Two failures in series among four flags, read from the landscape that the replay engine plays."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from triage.core.config import Config, SetFlag
from triage.core.search.plan import next_trials
from triage.core.search.recommend import best_started
from triage.core.search.suspected import suspected
from triage.core.trials import Done, Entry, Item, Problem, Seen

LANDSCAPE = Path(__file__).parents[3] / "fixtures/landscapes/series-4flags.yaml"
EP, NVLS = "ep-size", "enable-nccl-nvls"
FUSION, TREE = "enable-flashinfer-allreduce-fusion", "speculative-algorithm"
CAUSES = {
    "flashinfer-autotune": "cublas-mla-absorb-bmm",
    "graph-capture": "nonetype-capture-batch-field",
}
WEIGHTS = {EP: 5.0, NVLS: 3.0, FUSION: 2.0, TREE: 8.0}


def problem(goal: str, stop: str, suspicion: tuple[tuple[str, float], ...] = ()) -> Problem:
    items = tuple(Item(key=k, change=SetFlag(k, True), weight=w) for k, w in WEIGHTS.items())
    return Problem(
        name="series",
        baseline=Config.of({"tp-size": "8"}),
        items=items,
        goal=goal,
        stop=stop,
        suspicion=suspicion,
    )


@pytest.fixture(scope="module")
def endings() -> dict[frozenset[str], str | None]:
    """By set of items the phase in which it fails, None if it starts."""
    told = yaml.safe_load(LANDSCAPE.read_text())["entries"]
    return {frozenset(e["when"]): e.get("phase") for e in told}


def search(wanted: Problem, endings: dict[frozenset[str], str | None]) -> tuple[list[Entry], Done]:
    journal: list[Entry] = []
    while not isinstance(step := next_trials(wanted, journal), Done):
        phase = endings[step[0].items]
        journal.append(
            Entry(
                number=len(journal) + 1,
                items=step[0].items,
                seen=Seen.FAILS if phase else Seen.STARTS,
                signature=CAUSES[phase] if phase else None,
                phase=phase or "serving",
            )
        )
    return journal, step


def test_the_landscape_answers_every_set_of_its_items(
    endings: dict[frozenset[str], str | None],
) -> None:
    assert len(endings) == 16
    assert {keys for keys, phase in endings.items() if phase} == {k for k in endings if EP in k}


@pytest.mark.parametrize("suspicion", [(), ((EP, 8.0),)], ids=["unsuspected", "suspected"])
def test_everything_but_expert_parallelism_is_proved_best_in_three_launches(
    endings: dict[frozenset[str], str | None], suspicion: tuple[tuple[str, float], ...]
) -> None:
    wanted = problem("best", "proved", suspicion)
    journal, done = search(wanted, endings)
    assert best_started(wanted, journal) == {NVLS, FUSION, TREE}
    assert done.level == "proved"
    assert len(journal) - 2 <= (2 if suspicion else 3)


def test_both_failures_in_series_are_found_in_four_launches(
    endings: dict[frozenset[str], str | None],
) -> None:
    wanted = problem("all", "97%")
    journal, done = search(wanted, endings)
    assert {(s.items, s.signature) for s in suspected(wanted, journal)} == {
        (frozenset({EP}), "nonetype-capture-batch-field"),
        (frozenset({EP, NVLS}), "cublas-mla-absorb-bmm"),
    }
    assert done.level == "97%"
    assert len(journal) - 2 <= 4

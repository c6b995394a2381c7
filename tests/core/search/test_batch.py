"""Several launches at the same time: what is asked beside the first, and what it saves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.search.landscape import Answer, Landscape, Shape, draw
from bench.search.problem import entry_of, mask_of, problem_of
from triage.core.search.plan import next_trials
from triage.core.search.recommend import best_started
from triage.core.trials import Done, Entry, Problem, Trial


def begun(scape: Landscape, goal: str = "best") -> tuple[Problem, list[Entry]]:
    """The problem and its two ends."""
    problem = problem_of(scape, goal, stop="97%")
    ends = [(frozenset[str](), Answer("starts", 0.0)), (problem.keys(), scape.launch(scape.full))]
    trials = [(Trial(items=items, why=""), answer) for items, answer in ends]
    return problem, [entry_of(n, *one) for n, one in enumerate(trials, 1)]


def rounds(scape: Landscape, k: int) -> int:
    """Batches of k until the search ends; its answer must be right."""
    problem, journal = begun(scape)
    count = 0
    while not isinstance(step := next_trials(problem, journal, k), Done):
        count += 1
        assert 1 <= len(step) <= k
        for trial in step:
            answer = scape.launch(mask_of(scape, trial.items))
            journal.append(entry_of(len(journal) + 1, trial, answer))
    best = mask_of(scape, best_started(problem, journal))
    assert scape.value(best) == scape.best_value()
    return count


@pytest.mark.parametrize("goal", ["best", "first", "all"])
def test_a_batch_begins_with_the_single_launch_and_holds_different_ones(goal: str) -> None:
    problem, journal = begun(draw(Shape(8, 2), 1), goal)
    alone = next_trials(problem, journal, 1)
    assert isinstance(alone, tuple)
    (single,) = alone
    batch = next_trials(problem, journal, 4)
    assert isinstance(batch, tuple)
    assert batch[0] == single
    assert len({trial.items for trial in batch}) == len(batch) == 4
    asked = {entry.items for entry in journal}
    assert all(problem.allowed(t.items) and t.items not in asked for t in batch)


def test_a_batch_keeps_within_the_budget() -> None:
    problem, journal = begun(draw(Shape(8, 2), 1))

    step = next_trials(replace(problem, budget_trials=3), journal, 4)
    assert isinstance(step, tuple)
    assert len(step) == 1


def test_two_nodes_end_sooner_than_one() -> None:
    scapes = [draw(Shape(8, 2), seed) for seed in range(6)]
    one = sum(rounds(scape, 1) for scape in scapes)
    two = sum(rounds(scape, 2) for scape in scapes)
    assert two <= 0.85 * one

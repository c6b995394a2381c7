"""Several launches at the same time: what is asked beside the first, and what it saves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.search.landscape import Answer, Landscape, Shape, draw
from bench.search.nodes import at_once
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


def test_answers_that_are_used_as_they_come_save_hours() -> None:
    scapes = [draw(Shape(8, 2), seed) for seed in range(4)]
    one, two = ([at_once(scape, k) for scape in scapes] for k in (1, 2))
    assert all(run.right for run in (*one, *two))
    assert sum(run.seconds for run in two) <= 0.8 * sum(run.seconds for run in one)
    assert sum(run.launches for run in two) <= 1.6 * sum(run.launches for run in one)


@pytest.mark.parametrize("goal", ["best", "first", "all"])
def test_what_is_in_flight_is_not_asked_for_and_changes_what_is(goal: str) -> None:
    problem, journal = begun(draw(Shape(8, 2), 1), goal)
    batch = next_trials(problem, journal, 3)
    assert isinstance(batch, tuple)
    assert len(batch) == 3
    beside = next_trials(problem, journal, 2, [batch[0].items])
    assert isinstance(beside, tuple)
    assert [trial.items for trial in beside] == [trial.items for trial in batch[1:]]
    last = next_trials(problem, journal, 1, [trial.items for trial in batch])
    assert isinstance(last, tuple)
    assert not {t.items for t in last} & {t.items for t in batch}


def test_what_is_in_flight_is_paid_for_by_the_budget() -> None:
    problem, journal = begun(draw(Shape(8, 2), 1))
    batch = next_trials(problem, journal, 2)
    assert isinstance(batch, tuple)
    step = next_trials(replace(problem, budget_trials=4), journal, 2, [t.items for t in batch])
    assert isinstance(step, Done)
    assert step.reason == "budget"

"""A launch that the budget of time ends midway takes no proof back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from bench.search.landscape import Shape, draw
from bench.search.problem import entry_of, mask_of, problem_of
from triage.core.launch import Hung
from triage.core.search.plan import next_trials
from triage.core.trials import Done, Entry, Trial
from triage.session.climb import Climb
from triage.session.fleet import Flight
from triage.session.trial import TrialResult

ENDED = cast(
    "TrialResult",
    SimpleNamespace(capture=SimpleNamespace(outcome=Hung(silent_s=1.0, limit="total"))),
)


@pytest.mark.parametrize("needed", [True, False])
def test_a_proof_stands_though_the_time_ended_a_launch_that_it_can_do_without(
    needed: bool,
) -> None:
    one = draw(Shape(n=8, causes=2), 1027)
    problem = problem_of(one, "best", stop="proved")
    journal = [
        entry_of(1, Trial(items=frozenset(), why=""), one.launch(0)),
        entry_of(2, Trial(items=problem.keys(), why=""), one.launch(one.full)),
    ]
    while True:
        step = next_trials(problem, journal)
        assert not isinstance(step, Done), "this landscape is drawn to have such a launch"
        if needed or step[0].why.startswith("It holds a set that failed"):
            break
        journal.append(entry_of(len(journal) + 1, step[0], one.launch(mask_of(one, step[0].items))))
    done = _climb(problem, journal)._landed(
        Flight(number=9, trial=step[0], node=0, left_s=1.0), ENDED
    )
    assert isinstance(done, Done)
    assert (done.reason, done.level == "proved") == (
        ("budget", False) if needed else ("found", True)
    )


def _climb(problem: object, journal: list[Entry]) -> Climb:
    """One that has a problem, a journal and a setup which less time would change."""
    climb = Climb.__new__(Climb)
    vars(climb).update(
        problem=problem,
        journal=SimpleNamespace(entries=journal),
        setup=SimpleNamespace(within=lambda left_s: left_s),
    )
    return climb

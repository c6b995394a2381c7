"""The next launches as a tree: what a dry run shows."""

from __future__ import annotations

import pytest

from triage.core.config import Config, SetFlag
from triage.core.search.tree import decision_lines
from triage.core.trials import Entry, Item, Problem, Seen


def problem_of(*names: str) -> Problem:
    items = tuple(
        Item(key=n, change=SetFlag(n, True), weight=float(i)) for i, n in enumerate(names, 1)
    )
    return Problem(name="t", baseline=Config.of({"m": "x"}), items=items)


def test_the_tree_follows_each_answer_to_its_end() -> None:
    assert decision_lines(problem_of("a", "b"), depth=3) == (
        "launch 1: the baseline",
        "├─ starts → launch 2: everything wanted",
        "│  ├─ starts → end: Everything that is wanted starts together.",
        "│  └─ fails (A) → launch 3: b",
        "└─ fails (A) → end: The baseline itself fails (A): the fault is not in what was",
        "        added to it.",
    )


def test_the_answers_have_chances_that_leave_little_out() -> None:
    lines = decision_lines(problem_of(*"abcdef"), depth=4)
    told = [int(line.partition("%")[0].rsplit(" ", 1)[1]) for line in lines if "% →" in line]
    assert len(told) >= 2
    assert 90 <= sum(told) <= 102
    assert any("fails with B, a new failure, " in line for line in lines)


@pytest.mark.parametrize("depth", range(1, 6))
def test_the_tree_fits_a_terminal(depth: int) -> None:
    names = [f"enable-something-with-a-long-name-{n}" for n in range(6)]
    lines = decision_lines(problem_of(*names), depth=depth)
    assert max(map(len, lines)) <= 80
    assert all(line == line.rstrip() for line in lines)
    assert sum("launch " in line for line in lines) >= depth - 1


def test_a_search_that_has_begun_goes_on_with_the_failures_that_it_saw() -> None:
    problem = problem_of("a", "b", "c")
    journal = [
        Entry(number=1, items=frozenset(), seen=Seen.STARTS),
        Entry(number=2, items=problem.keys(), seen=Seen.FAILS, signature="no-room"),
    ]
    lines = decision_lines(problem, depth=2, journal=journal)
    assert lines[0].startswith("launch 3: ")
    assert any("fails with no-room, " in line for line in lines)
    assert any("fails with A, a new failure, " in line for line in lines)

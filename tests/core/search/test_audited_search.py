"""What an audit finds where a wanted flag repairs a failure, and what is told without one."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from bench.search.cells import AUDIT, LIKELY, PROVED
from bench.search.landscape import Fault, Landscape, Shape, draw
from bench.search.ours import Ours
from bench.search.play import Oracle, Played, judge, play
from bench.search.problem import entry_of, mask_of, problem_of
from triage.core.search import plan
from triage.core.search.belief import belief_of
from triage.core.search.chance import chances
from triage.core.search.journal import read_journal
from triage.core.search.plan import next_trials
from triage.core.trials import Done, Entry, Problem, Trial

REPAIRED = Shape(n=8, causes=2, repaired=0.6)
MISSED = (1060, 1063, 1105)  # three causes; the same
HARD = (1055, 1064, 1069, 1106, 1167)  # a search without an audit has missed the best of these


def scape(*faults: Fault, n: int = 4) -> Landscape:
    return Landscape(seed=0, n=n, worth=(1, 2, 3, 5, 8, 1, 2, 3)[:n], faults=faults)


@pytest.mark.parametrize("seed", [*HARD, *range(1000, 1003)])
def test_an_audit_finds_the_best_though_a_wanted_flag_repairs_a_failure(seed: int) -> None:
    found = play(AUDIT, draw(REPAIRED, seed), "best")
    assert found.right
    assert found.kept == 1.0
    assert found.guarded


@pytest.mark.parametrize("seed", [1013, 1030, 1078])
def test_an_audit_finds_the_best_where_two_flags_repair_two_failures(seed: int) -> None:
    assert play(AUDIT, draw(replace(REPAIRED, causes=3), seed), "best").right


def test_what_a_search_without_an_audit_misses_starts_and_says_what_it_rests_on() -> None:
    drawn = [draw(replace(REPAIRED, causes=3), seed) for seed in MISSED]
    missed = [s for s in drawn if not play(replace(AUDIT, audit=False), s, "best").right]
    assert missed
    for one in missed:
        found = play(replace(AUDIT, audit=False), one, "best")
        assert found.starts
        assert found.guarded
        assert play(AUDIT, one, "best").right


@pytest.mark.parametrize("seed", [1033, 1055, 1144])
def test_what_a_repair_would_keep_is_launched_without_an_audit_where_it_is_much(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = draw(REPAIRED, seed)
    found = play(PROVED, one, "best")
    assert found.right
    assert found.guarded
    monkeypatch.setattr(plan, "worthwhile", lambda _: None)
    short = play(PROVED, one, "best")
    assert not short.right
    assert short.launches < found.launches


@pytest.mark.parametrize("seed", range(1000, 1003))
def test_what_failed_with_all_that_is_wanted_is_not_doubted(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One cause, which all that is wanted shows: no wanted flag repairs it."""
    one = draw(Shape(n=8, causes=1), seed)
    found = play(PROVED, one, "best")
    monkeypatch.setattr(plan, "worthwhile", lambda _: None)
    assert found.launches == play(PROVED, one, "best").launches


def test_a_repair_is_the_likelier_the_less_was_there_when_the_cause_showed() -> None:
    """f00 fails later than f01, so nobody knows what repairs it until a launch without f01."""
    one = scape(Fault(1, 3, "late"), Fault(2, 1, "early"))
    problem = problem_of(one, "best", stop="proved")
    journal = [
        entry_of(i, Trial(items=_items(problem, mask), why=""), one.launch(mask))
        for i, mask in enumerate((0b0000, 0b1111, 0b0010, 0b1100, 0b0001))
    ]
    alone = _chance(problem, journal, 0b1101)
    more = entry_of(5, Trial(items=_items(problem, 0b0101), why=""), one.launch(0b0101))
    assert 0 < _chance(problem, [*journal, more], 0b1101) < alone
    every = entry_of(5, Trial(items=_items(problem, 0b1101), why=""), one.launch(0b1101))
    assert _chance(problem, [*journal, every], 0b1101) == 0


def test_an_audit_adds_no_launch_where_what_failed_failed_with_all_that_is_wanted() -> None:
    """One failure, which all that is wanted shows: no wanted flag repairs it."""
    one = scape(Fault(flags=0b0011, phase=2, name="a"))
    audited, plain = (_play(replace(AUDIT, audit=audit), one, "best") for audit in (True, False))
    assert audited.launches == plain.launches
    assert audited.right


def test_a_hint_of_a_repair_is_followed_without_an_audit() -> None:
    """An early failure inside all that is wanted does not show there: something repairs it."""
    hinted = draw(REPAIRED, 1064)
    early, late = min(f.phase for f in hinted.faults), hinted.launch(hinted.full)
    assert late.name != next(f.name for f in hinted.faults if f.phase == early)
    assert _play(replace(AUDIT, audit=False), hinted, "best").right


def test_a_cause_that_holds_a_later_one_of_its_phase_is_found() -> None:
    """Both fail in one phase; the launch of all that is wanted shows which goes first."""
    larger = Fault(flags=0b0110, phase=1, name="larger")
    smaller = Fault(flags=0b0010, phase=1, name="smaller")
    found = _play(LIKELY, scape(larger, smaller), "all")
    assert found.right
    assert found.level == "97%"


def test_all_is_not_called_proved_where_no_causes_explain_the_answers() -> None:
    """Nothing in the model says that a flag repairs; what was reduced is told, and no more."""
    told = [_search_all(seed) for seed in range(1000, 1006)]
    without = [(level, say) for level, say in told if level != "97%"]
    assert without
    assert all(level == "seen" for level, _ in without)
    assert all("others may fail as well" in say for _, say in without)
    assert any("fails with cause" in say for _, say in without)


def _search_all(seed: int) -> tuple[str, str]:
    found = LIKELY.ask(_oracle(draw(replace(REPAIRED, n=7), seed)), "all")
    return found.level, found.say


def _items(problem: Problem, mask: int) -> frozenset[str]:
    return frozenset(item.key for i, item in enumerate(problem.items) if mask >> i & 1)


def _chance(problem: Problem, journal: list[Entry], mask: int) -> float:
    belief = belief_of(read_journal(problem, journal))
    return float(chances(belief.hypotheses, np.array([mask], dtype=np.uint64))[0])


def _play(strategy: Ours, landscape: Landscape, goal: str) -> Played:
    oracle = _oracle(landscape)
    return judge(oracle, goal, strategy.ask(oracle, goal))


def _oracle(landscape: Landscape) -> Oracle:
    return Oracle(landscape, random.Random(0))


def test_a_proof_stands_though_the_budget_has_no_launch_for_what_it_can_do_without() -> None:
    one = draw(Shape(n=8, causes=2), 1027)
    problem = problem_of(one, "best", stop="proved")
    wanted = Trial(items=problem.keys(), why="")
    journal = [
        entry_of(1, Trial(items=frozenset(), why=""), one.launch(0)),
        entry_of(2, wanted, one.launch(one.full)),
    ]
    while True:
        step = next_trials(problem, journal)
        assert not isinstance(step, Done), "this landscape is drawn to have such a launch"
        if step[0].why.startswith("It holds a set that failed"):
            break
        mask = mask_of(one, step[0].items)
        journal.append(entry_of(len(journal) + 1, step[0], one.launch(mask)))
    assert "%" not in step[0].why, "what is believed holds no repair, so it foretells nothing"
    assert next_trials(problem, journal, 3) == step, "nothing is open beside it"
    spent = sum(entry.seconds for entry in journal)
    for tight in (replace(problem, budget_trials=len(journal)), replace(problem, budget_s=spent)):
        done = next_trials(tight, journal)
        assert isinstance(done, Done)
        assert (done.reason, done.level) == ("found", "proved")


def test_launches_with_two_causes_of_one_name_say_that_not_both_are_repaired() -> None:
    """Else an audit launches whatever is worth more and holds both: here more than 100 masks."""
    one, other = (Fault(flags=mask, phase=1, name="same") for mask in (0b0001, 0b1000))
    found = _play(AUDIT, scape(one, other, n=8), "best")
    assert found.right
    assert found.launches <= 20

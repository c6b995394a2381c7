"""What an audit finds where a wanted flag repairs a failure, and what is told without one."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from bench.search.cells import AUDIT, LIKELY
from bench.search.landscape import Fault, Landscape, Shape, draw
from bench.search.ours import Ours
from bench.search.play import Oracle, Played, judge, play

REPAIRED = Shape(n=8, causes=2, repaired=0.6)
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
    drawn = [draw(REPAIRED, seed) for seed in range(1050, 1070)]
    missed = [s for s in drawn if not play(replace(AUDIT, audit=False), s, "best").right]
    assert missed
    for one in missed:
        found = play(replace(AUDIT, audit=False), one, "best")
        assert found.starts
        assert found.guarded
        assert play(AUDIT, one, "best").right


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


def _play(strategy: Ours, landscape: Landscape, goal: str) -> Played:
    oracle = _oracle(landscape)
    return judge(oracle, goal, strategy.ask(oracle, goal))


def _oracle(landscape: Landscape) -> Oracle:
    return Oracle(landscape, random.Random(0))

"""Up to four flags: the exact policy against brute force, and all causes that explain a journal."""

from __future__ import annotations

from functools import cache

import pytest

from bench.search.landscape import Shape, draw
from bench.search.ours import Ours
from bench.search.play import play
from bench.search.rivals import LINEAR, ONE_AT_A_TIME
from triage.core.config import Config, SetFlag
from triage.core.search.belief import Belief, belief_of
from triage.core.search.census import census
from triage.core.search.exact import FLOOR, Game, Policy, patterns
from triage.core.search.journal import read_journal
from triage.core.search.space import space_of
from triage.core.trials import Entry, Item, Problem, Seen

NAMES = "abcd"


def problem(weights: str) -> Problem:
    """Flags a, b, c ... of these weights."""
    items = tuple(
        Item(key=k, change=SetFlag(k, True), weight=float(w))
        for k, w in zip(NAMES, weights, strict=False)
    )
    return Problem(name="few", baseline=Config.of({"m": "x"}), items=items)


def belief(wanted: Problem, *answers: tuple[str, str]) -> Belief:
    """After launches such as ("ab", "one at graph-capture"), or ("a", "") for a start."""
    journal = []
    for number, (keys, failure) in enumerate(answers, start=1):
        name, _, phase = failure.partition(" at ")
        journal.append(
            Entry(
                number=number,
                items=frozenset(keys),
                seen=Seen.FAILS if failure else Seen.STARTS,
                signature=name or None,
                phase=phase or "serving",
            )
        )
    return belief_of(read_journal(wanted, journal))


def fewest(worth: list[float], weight: dict[int, float], asked: frozenset[int]) -> float:
    """Launches until the best is proved, times the weight: every order of all launches tried."""

    @cache
    def least(left: frozenset[int], done: float, asked: frozenset[int]) -> float:
        better = [i for i in range(len(worth)) if worth[i] > done]
        if all(p >> i & 1 for p in left for i in better):
            return 0.0
        found = []
        for i in range(len(worth)):
            good = frozenset(p for p in left if not p >> i & 1)
            if i in asked:
                continue
            more = asked | {i}
            cost = sum(weight[p] for p in left)
            cost += least(good, max(done, worth[i]), more) if good else 0.0
            cost += least(left - good, done, more) if left - good else 0.0
            found.append(cost)
        return min(found)

    return least(frozenset(weight), 0.0, asked)


@pytest.mark.parametrize("weights", ["111", "123", "852", "118"])
@pytest.mark.parametrize("failure", ["one at weight-load", "one at graph-capture"])
def test_three_flags_take_as_few_launches_as_brute_force_finds(weights: str, failure: str) -> None:
    wanted = problem(weights)
    space = space_of(wanted)
    masks, every = patterns(space)
    ends = (masks.index(0), masks.index(space.full))
    left = [p for p in every if not p >> ends[0] & 1 and p >> ends[1] & 1]
    known = belief(wanted, ("", ""), ("abc", failure))
    shares = census(known.likelihoods, masks).shares()
    weight = {p: FLOOR + shares.get(p, 0.0) for p in left}
    worth = [space.value(m) for m in masks]
    policy = Policy(Game(worth, left, set(ends), 1.0), list(weight.values()))
    cost, pick = policy.solve((1 << len(left)) - 1, 0.0)
    assert pick is not None
    assert cost == pytest.approx(fewest(worth, weight, frozenset(ends)))
    assert policy.within((1 << len(left)) - 1, 0.0, pick, cost + 1e-9)
    assert not policy.within((1 << len(left)) - 1, 0.0, pick, cost - 1e-6)


def test_all_causes_of_the_census_explain_every_answer() -> None:
    wanted = problem("5328")
    answers = (
        ("", ""),
        ("abcd", "one at kv-pool-init"),
        ("ad", "two at graph-capture"),
        ("bd", ""),
        ("bcd", "one at kv-pool-init"),
    )
    known = belief(wanted, *answers)
    space = known.space
    masks, _ = patterns(space)
    found = census(known.likelihoods, masks)
    assert len(found) > 1
    assert found.weight.sum() == pytest.approx(1.0)
    assert (found.weight > 0).all()
    for keys, failure in answers:
        groups = found.answers(space.mask(keys))
        shown = 0.0 if not failure else 1.0
        fails = found.pattern >> masks.index(space.mask(keys)) & 1
        assert (fails == shown).all()
        assert [bool(rows.all()) for rows in groups if rows.any()] == [True]


def test_a_failure_that_no_launch_could_show_is_in_no_census() -> None:
    wanted = problem("532")
    known = belief(wanted, ("", ""), ("abc", "one at graph-capture"))
    found = census(known.likelihoods, [0, 1, 3, 7])
    for masks, labels in zip(found.mask.tolist(), found.label.tolist(), strict=True):
        ones = [m for m, label in zip(masks, labels, strict=True) if label == 0]
        assert not any(a != b and a & ~b == 0 for a in ones for b in ones)


def test_more_failures_than_the_census_has_causes_leave_it_empty() -> None:
    wanted = problem("5328")
    phases = ("weight-load", "kv-pool-init", "graph-capture", "warmup-request")
    launches = [(k, f"{k} at {p}") for k, p in zip(NAMES, phases, strict=True)]
    known = belief(wanted, ("", ""), ("abcd", "a at weight-load"), *launches)
    found = census(known.likelihoods, patterns(known.space)[0])
    assert len(found) == 0
    assert found.shares() == {}


@pytest.mark.parametrize(("causes", "most"), [(1, 0.95), (2, 1.0), (3, 1.13)])
def test_four_flags_take_about_no_more_launches_than_one_flag_at_a_time(
    causes: int, most: float
) -> None:
    scapes = [draw(Shape(n=4, causes=causes), 1000 + i) for i in range(24)]
    ours = [play(Ours(stop="proved"), scape, "best") for scape in scapes]
    other = [play(ONE_AT_A_TIME, scape, "best") for scape in scapes]
    assert all(p.right for p in ours)
    assert sum(p.launches for p in ours) <= most * sum(p.launches for p in other)


@pytest.mark.parametrize(("causes", "most"), [(1, 1.05), (2, 1.0), (3, 1.0)])
def test_a_first_failing_set_of_four_flags_takes_about_no_more_than_leaving_out_each(
    causes: int, most: float
) -> None:
    scapes = [draw(Shape(n=4, causes=causes), 1000 + i) for i in range(24)]
    ours = [play(Ours(stop="proved"), scape, "first") for scape in scapes]
    other = [play(LINEAR, scape, "first") for scape in scapes]
    assert all(p.right for p in ours)
    assert sum(p.launches for p in ours) <= most * sum(p.launches for p in other)

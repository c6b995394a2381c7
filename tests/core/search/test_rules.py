"""Flags that exclude or need each other: what a search may claim, held against every configuration."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from triage.core.config import Config, SetFlag
from triage.core.search.bound import Bar
from triage.core.search.fallback import Reduced, reduce_best
from triage.core.search.journal import read_journal
from triage.core.search.lawful import largest
from triage.core.search.plan import forecast, next_trials
from triage.core.search.recommend import best_started
from triage.core.search.space import space_of
from triage.core.search.suspected import suspected
from triage.core.trials import CHOICES, Done, Entry, Item, Noise, Problem, Seen

PHASES = ("weight-load", "kv-pool-init", "graph-capture", "warmup-request")
NAMES = "abcdef"
Keys = frozenset[str]

few = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass(frozen=True)
class World:
    """A problem with rules, and what is true: sets that fail, each in a phase."""

    problem: Problem
    faults: tuple[tuple[Keys, int], ...]

    def lawful(self) -> list[Keys]:
        """Every combination that the rules allow."""
        every: list[Keys] = [frozenset()]
        for item in self.problem.items:
            every += [keys | {item.key} for keys in every]
        return [keys for keys in every if self.problem.allowed(keys)]

    def shows(self, items: Keys) -> tuple[int, str] | None:
        """The failure of a launch: the earliest phase, in it always in the same order."""
        inside = [
            (phase, "+".join(sorted(fault))) for fault, phase in self.faults if fault <= items
        ]
        return min(inside, default=None)

    def smallest(self) -> set[tuple[Keys, str]]:
        """Each lawful combination that shows a failure and holds no smaller one that shows it."""
        shown = {keys: found[1] for keys in self.lawful() if (found := self.shows(keys))}
        return {
            (keys, name)
            for keys, name in shown.items()
            if not any(less < keys and shown[less] == name for less in shown)
        }

    def search(self) -> tuple[list[Entry], Done]:
        journal: list[Entry] = []
        while not isinstance(step := next_trials(self.problem, journal), Done):
            assert len(journal) < self.problem.budget_trials, "it does not end"
            found = self.shows(step[0].items)
            journal.append(
                Entry(
                    number=len(journal) + 1,
                    items=step[0].items,
                    seen=Seen.FAILS if found else Seen.STARTS,
                    signature=found[1] if found else None,
                    phase=PHASES[found[0]] if found else "serving",
                )
            )
        return journal, step


def problem_of(weights: dict[str, float], **more: object) -> Problem:
    return Problem(
        name="any",
        baseline=Config.of({"m": "x", "held": "1"}),
        items=tuple(Item(key=k, change=SetFlag(k, True), weight=w) for k, w in weights.items()),
        pinned=("held",),
        budget_trials=200,
        **more,  # type: ignore[arg-type]  # fields by name
    )


@st.composite
def worlds(draw: st.DrawFn, goal: str) -> World:
    names = NAMES[: draw(st.integers(2, len(NAMES)))]
    name = st.sampled_from(names)
    pairs = st.tuples(name, name).filter(lambda pair: pair[0] != pair[1])
    needed = st.tuples(name, st.sampled_from([*names, "held", "absent"]))
    faults = st.tuples(st.frozensets(name, min_size=1, max_size=3), st.integers(0, 3))
    problem = problem_of(
        {n: float(draw(st.integers(1, 8))) for n in names},
        requires=tuple((a, b) for a, b in draw(st.lists(needed, max_size=2)) if a != b),
        not_both=tuple(draw(st.lists(pairs, min_size=1, max_size=4))),
        goal=goal,
    )
    return World(problem, tuple(dict(draw(st.lists(faults, max_size=3))).items()))


@few
@given(st.sampled_from(["best", "first", "all"]).flatmap(worlds))
def test_a_search_under_rules_ends_keeps_them_and_repeats_nothing(world: World) -> None:
    journal, done = world.search()
    asked = [entry.items for entry in journal]
    assert len(asked) == len(set(asked))
    assert all(world.problem.allowed(keys) for keys in asked)
    assert all(world.problem.config(keys).flag_values()["held"] == "1" for keys in asked)
    assert done.reason in {"found", "wanted-starts", "stuck"}
    assert forecast(world.problem, journal) == (len(journal), len(journal))


@few
@given(worlds("best"))
def test_the_best_is_the_best_of_all_that_the_rules_allow(world: World) -> None:
    journal, done = world.search()
    weight = world.problem.weight
    assert done.level == "proved"
    best = max(weight(keys) for keys in world.lawful() if not world.shows(keys))
    assert weight(best_started(world.problem, journal)) == best


@few
@given(worlds("first"))
def test_one_failing_set_is_found_or_each_combination_is_known_to_start(world: World) -> None:
    journal, done = world.search()
    named = {(s.items, s.signature) for s in suspected(world.problem, journal) if s.minimal}
    assert done.level == "proved"
    assert bool(named) == bool(world.smallest())
    assert named <= world.smallest()
    if not named:
        assert everything_started(world, journal)


@few
@given(worlds("all"))
def test_all_causes_are_called_proved_only_if_each_combination_is_known_to_start(
    world: World,
) -> None:
    journal, done = world.search()
    assert (done.level == "proved") == (not world.smallest())
    if done.level == "proved":
        assert everything_started(world, journal)


def everything_started(world: World, journal: list[Entry]) -> bool:
    started = [entry.items for entry in journal if entry.seen is Seen.STARTS]
    return all(any(keys <= held for held in started) for keys in world.lawful())


@pytest.mark.parametrize("goal", ["first", "all"])
def test_the_flag_that_the_worthiest_combination_leaves_out_is_launched_too(goal: str) -> None:
    """{a, c} starts; b, which excludes a, fails whatever it is with."""
    problem = problem_of({"a": 5.0, "b": 2.0, "c": 1.0}, not_both=(("a", "b"),), goal=goal)
    world = World(problem, ((frozenset("b"), 2),))
    journal, done = world.search()
    assert {s.items for s in suspected(problem, journal)} == {frozenset("b")}
    assert [sorted(entry.items) for entry in journal[:3]] == [[], ["a", "c"], ["b", "c"]]
    assert done.reason == "found"
    assert "{b} fails with b" in done.say


@pytest.mark.parametrize("goal", ["first", "all"])
def test_nothing_fails_only_after_each_largest_combination_started(goal: str) -> None:
    problem = problem_of(dict.fromkeys("abcd", 1.0), not_both=(("a", "b"), ("c", "d")), goal=goal)
    journal, done = World(problem, ()).search()
    assert {entry.items for entry in journal} == {
        frozenset(keys) for keys in ("", "ac", "ad", "bc", "bd")
    }
    # The second launch shares no flag with the first: each flag has been in one of the two.
    assert journal[1].items | journal[2].items == frozenset("abcd")
    assert (done.reason, done.level) == ("found", "proved")
    assert done.say == (
        "No combination that the rules allow fails: each lies inside one of 4 that started."
    )


def test_the_best_under_rules_needs_one_launch_if_it_starts_and_says_so() -> None:
    problem = problem_of({"a": 5.0, "b": 2.0, "c": 1.0}, not_both=(("a", "b"),))
    journal, done = World(problem, ((frozenset("b"), 2),)).search()
    assert len(journal) == 2
    assert done.say == (
        "all but b started and keeps 6 of 8; the rules allow nothing that keeps more."
    )


def test_under_a_bound_of_97_percent_a_cover_of_all_small_sets_is_enough() -> None:
    """Six pairs have 64 largest combinations; far fewer hold every three flags together."""
    names = "abcdefghijkl"
    pairs = tuple(zip(names[::2], names[1::2], strict=True))
    problem = problem_of(dict.fromkeys(names, 1.0), not_both=pairs, goal="all", stop="97%")
    journal, done = World(problem, ()).search()
    assert (done.reason, done.level) == ("found", "97%")
    assert (
        done.say == f"Nothing failed in {len(journal)} launches; some flags were in none together."
    )
    assert len(journal) < 20
    space = space_of(read_journal(problem, ()).problem)
    assert len(largest(space)) == 64


@pytest.mark.parametrize("goal", ["first", "all"])
def test_among_launches_that_lie_a_start_is_asked_for_again_before_nothing_is_said_to_fail(
    goal: str,
) -> None:
    problem = problem_of(
        {"a": 2.0, "b": 1.0}, not_both=(("a", "b"),), goal=goal, noise=Noise(0.05, 0.1)
    )
    journal, done = World(problem, ()).search()
    assert sorted(sorted(e.items) for e in journal) == [[], ["a"], ["a"], ["b"], ["b"]]
    assert done.level == "97%"


def test_a_start_of_which_nothing_more_is_learned_does_not_take_the_whole_budget() -> None:
    problem = problem_of(
        {"a": 2.0, "b": 1.0}, not_both=(("a", "b"),), goal="all", noise=Noise(0.05, 0.1)
    )
    journal: list[Entry] = []
    while not isinstance(step := next_trials(problem, tuple(journal)), Done):
        again = any(e.items == frozenset("a") for e in journal)
        lost = again and step[0].items == frozenset("a")
        seen = Seen.UNRESOLVED if lost else Seen.STARTS
        journal.append(Entry(number=len(journal) + 1, items=step[0].items, seen=seen, seconds=1.0))
        assert len(journal) < 20
    assert any(e.items == frozenset("b") for e in journal)
    assert (step.reason, step.level) == ("stuck", "seen")
    assert step.say == "Nothing failed, but these stayed unresolved: a."


def test_without_a_model_nothing_is_proved_where_launches_lie() -> None:
    names = [f"f{number:02d}" for number in range(61)]  # more than the model holds
    problem = problem_of(dict.fromkeys(names, 1.0), goal="best", noise=Noise(0.05, 0.3))
    journal = [
        Entry(number=1, items=frozenset(), seen=Seen.STARTS, seconds=1.0),
        Entry(number=2, items=frozenset(names), seen=Seen.STARTS, seconds=1.0),
    ]
    step = next_trials(problem, tuple(journal))
    assert not isinstance(step, Done) or step.level != "proved"


@pytest.mark.parametrize("goal", ["best", "first", "all"])
def test_the_forecast_counts_the_combinations_that_exclude_each_other(goal: str) -> None:
    problem = problem_of(dict.fromkeys("abcd", 1.0), not_both=(("a", "b"), ("c", "d")), goal=goal)
    fewest, most = forecast(problem)
    assert fewest == (2 if goal == "best" else 3)
    assert most >= (2 if goal == "best" else 5)
    plain = replace(problem, not_both=())
    assert forecast(plain)[0] == 2


def test_where_there_is_too_much_to_look_at_nothing_is_proved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = problem_of({"a": 2.0, "b": 1.0})
    space = space_of(problem)
    bars = [Bar(space.mask("a"))]
    started = [space.mask("b"), space.mask("")]
    assert reduce_best(space, started, bars, [0, 1]) == Reduced(None, (space.mask("a"),))
    monkeypatch.setattr("triage.core.search.fallback.worthiest", lambda *_, **__: None)
    assert not reduce_best(space, started, bars, [0, 1]).whole


@pytest.mark.parametrize("place", [0, CHOICES - 1])
def test_as_many_choices_as_are_allowed_are_told_apart(place: int) -> None:
    items = tuple(Item(key=f"f{i}", change=SetFlag(f"f{i}", "1")) for i in range(CHOICES))
    problem = Problem(name="p", baseline=Config.of({"model-path": "m"}), items=items)
    journal: list[Entry] = []
    while not isinstance(step := next_trials(problem, journal), Done):
        fails = f"f{place}" in step[0].items
        journal.append(
            Entry(
                number=len(journal) + 1,
                items=step[0].items,
                seen=Seen.FAILS if fails else Seen.STARTS,
                signature="NAMED" if fails else None,
                phase="graph-capture" if fails else "serving",
                seconds=100.0,
            )
        )
    assert (step.reason, step.level) == ("found", "proved")
    assert best_started(problem, journal) == problem.keys() - {f"f{place}"}


def test_one_choice_more_is_refused_in_a_sentence() -> None:
    items = tuple(Item(key=f"f{i}", change=SetFlag(f"f{i}", "1")) for i in range(CHOICES + 1))
    with pytest.raises(ValueError, match=r"^64 choices, and a search can tell 63 apart$"):
        space_of(Problem(name="p", baseline=Config(), items=items))

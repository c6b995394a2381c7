"""Minimal failing sets read from a journal, and the launches that would find the next one."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from triage.core.config import Change, Config, SetFlag, UnsetFlag
from triage.core.search.reduce import failing_sets
from triage.core.search.subsets import distinct, heaviest, less, with_needs
from triage.core.trials import Entry, FailingSet, Item, Problem, Seen
from triage.core.wording import item_key, join


def keys(*names: str) -> frozenset[str]:
    return frozenset(names)


def problem_of(
    *names: str,
    requires: tuple[tuple[str, str], ...] = (),
    not_both: tuple[tuple[str, str], ...] = (),
    weights: tuple[float, ...] = (),
) -> Problem:
    return Problem(
        name="test",
        baseline=Config.of({"tp-size": "8"}),
        items=tuple(
            Item(key=name, change=SetFlag(name, True), weight=weight)
            for name, weight in zip(names, weights or (1.0,) * len(names), strict=True)
        ),
        requires=requires,
        not_both=not_both,
    )


def starts(number: int, *names: str, provenance: str = "launched") -> Entry:
    return Entry(number=number, items=keys(*names), seen=Seen.STARTS, provenance=provenance)


def fails(
    number: int, signature: str, *names: str, provenance: str = "launched", phase: str = "unknown"
) -> Entry:
    return Entry(
        number=number,
        items=keys(*names),
        seen=Seen.FAILS,
        signature=signature,
        cause=signature,
        title=f"title of {signature}",
        phase=phase,
        provenance=provenance,
    )


def test_faults_in_series_are_two_minimal_sets() -> None:
    journal = [
        starts(1),
        fails(2, "cublas", "ep", "nvls", "fusion", phase="flashinfer-autotune"),
        fails(3, "nonetype", "ep", phase="graph-capture"),
        starts(4, "nvls"),
        fails(5, "hang", "fusion", provenance="assumed", phase="graph-capture"),
        fails(6, "cublas", "ep", "nvls", phase="flashinfer-autotune"),
    ]
    assert failing_sets(problem_of("ep", "nvls", "fusion"), journal) == (
        FailingSet(
            items=keys("ep", "nvls"),
            signature="cublas",
            cause="cublas",
            title="title of cublas",
            phase="flashinfer-autotune",
            entry=6,
        ),
        FailingSet(
            items=keys("ep"),
            signature="nonetype",
            cause="nonetype",
            title="title of nonetype",
            phase="graph-capture",
            entry=3,
        ),
        FailingSet(
            items=keys("fusion"),
            signature="hang",
            cause="hang",
            title="title of hang",
            phase="graph-capture",
            entry=5,
            assumed=True,
        ),
    )


def test_a_set_whose_neighbour_was_never_launched_is_not_called_minimal() -> None:
    journal = [starts(1), fails(2, "x", "a", "b"), starts(3, "a")]
    (only,) = failing_sets(problem_of("a", "b"), journal)
    assert (only.items, only.minimal) == (keys("a", "b"), False)


def test_a_set_is_assumed_if_its_neighbours_answer_is() -> None:
    journal = [starts(1), fails(2, "x", "a", "b"), starts(3, "a"), starts(4, "b")]
    problem = problem_of("a", "b")
    assert [s.assumed for s in failing_sets(problem, journal)] == [False]
    journal[3] = starts(4, "b", provenance="assumed")
    assert [s.assumed for s in failing_sets(problem, journal)] == [True]


def test_an_unresolved_entry_is_no_failure() -> None:
    journal = [starts(1), Entry(number=2, items=keys("a"), seen=Seen.UNRESOLVED, reason="busy")]
    assert failing_sets(problem_of("a"), journal) == ()


def test_a_failure_without_a_name_is_still_a_failure() -> None:
    journal = [starts(1), Entry(number=2, items=keys("a"), seen=Seen.FAILS)]
    assert [s.signature for s in failing_sets(problem_of("a"), journal)] == ["none"]


def test_a_smaller_set_inside_one_that_started_need_not_be_launched() -> None:
    journal = [
        starts(1),
        fails(2, "x", "a", "b", "c"),
        fails(3, "x", "a", "b"),
        starts(4, "a", "c"),
        starts(5, "b", "c"),
    ]
    (only,) = failing_sets(problem_of("a", "b", "c"), journal)
    assert (only.items, only.minimal, only.implied) == (keys("a", "b"), True, True)
    journal[3] = starts(4, "a")
    journal[4] = starts(5, "b")
    (only,) = failing_sets(problem_of("a", "b", "c"), journal)
    assert (only.minimal, only.implied) == (True, False)


def test_heaviest_keeps_most_weight_outside_all_failing_sets() -> None:
    problem = problem_of("a", "b", "c", "d", weights=(4, 3, 2, 1.5))
    assert heaviest(problem) == keys("a", "b", "c", "d")
    assert heaviest(problem, [keys("a", "b"), keys("d")]) == keys("a", "c")
    assert heaviest(problem, [keys("a"), keys("b", "c")], [keys("b", "d")]) == keys("c", "d")
    assert heaviest(problem, [keys()]) is None


def test_heaviest_meets_requirements_and_exclusions() -> None:
    problem = problem_of(
        "a", "b", "c", requires=(("a", "b"), ("c", "tp-size")), not_both=(("b", "c"),)
    )
    assert heaviest(problem) == keys("a", "b")
    assert heaviest(problem, [keys("b")]) == keys("c")


def test_needs_come_along_and_leave_together() -> None:
    problem = problem_of("a", "b", "c", requires=(("a", "b"), ("b", "c")))
    assert with_needs(problem, ["a"]) == keys("a", "b", "c")
    assert less(problem, keys("a", "b", "c"), "c") == keys()
    assert less(problem, keys("a", "b", "c"), "a") == keys("b", "c")
    excluded = problem_of("a", "b", requires=(("a", "b"),), not_both=(("a", "b"),))
    assert with_needs(excluded, ["a"]) is None


@st.composite
def leaving_out(draw: st.DrawFn) -> Problem:
    """Items that set flags, and items that leave the baseline's flags out; some need some."""
    sets: list[Change] = [SetFlag(name, True) for name in "abc"[: draw(st.integers(1, 3))]]
    drops = [UnsetFlag(name) for name in ("p", "q")[: draw(st.integers(1, 2))]]
    items = tuple(
        Item(key=item_key(change), change=change, weight=draw(st.integers(1, 4)))
        for change in draw(st.permutations([*sets, *drops]))
    )
    keys = [item.key for item in items]
    pair = st.tuples(st.sampled_from(keys), st.sampled_from([*keys, "p", "q"]))
    needs = st.lists(pair.filter(lambda p: p[0] != p[1]), max_size=3).map(tuple)
    baseline = Config.of({"p": "1", "q": "2"})
    return Problem(name="test", baseline=baseline, items=items, requires=draw(needs))


@settings(max_examples=200, deadline=None)
@given(leaving_out())
def test_what_is_needed_is_in_every_config_that_may_be_launched(problem: Problem) -> None:
    """Against brute force: a chosen item's need is an item chosen, or a flag of the config."""
    everything = [
        frozenset(chosen)
        for size in range(len(problem.items) + 1)
        for chosen in combinations(sorted(problem.keys()), size)
    ]
    allowed = {
        chosen
        for chosen in everything
        if all(
            b in chosen or problem.config(chosen).get(b) is not None
            for a, b in problem.requires
            if a in chosen
        )
    }
    assert {chosen for chosen in everything if problem.allowed(chosen)} == allowed
    assert {chosen for chosen in everything if distinct(problem).allowed(chosen)} == allowed
    most = max(problem.weight(chosen) for chosen in allowed)
    best = heaviest(problem)
    assert best in allowed
    assert problem.weight(best) == most
    for item in (one.key for one in problem.items):
        alone = with_needs(problem, [item])
        above = [chosen for chosen in allowed if item in chosen]
        assert (alone is None) == (not above)
        assert alone is None or (alone in allowed and all(alone <= one for one in above))
    for chosen in allowed:
        for item in chosen:
            left = less(problem, chosen, item)
            below = [one for one in allowed if one <= chosen - {item}]
            assert left in below
            assert all(one <= left for one in below)


def test_a_flag_that_is_left_out_meets_no_need() -> None:
    problem = Problem(
        name="test",
        baseline=Config.of({"tp-size": "8"}),
        items=(
            Item(key="ep-size", change=SetFlag("ep-size", "8"), weight=2),
            Item(key="without:tp-size", change=UnsetFlag("tp-size"), weight=1),
        ),
        requires=(("ep-size", "tp-size"),),
    )
    assert problem.allowed(keys("ep-size"))
    assert not problem.allowed(keys("ep-size", "without:tp-size"))
    assert heaviest(problem) == keys("ep-size")


def test_items_that_change_nothing_or_repeat_another_drop_out() -> None:
    problem = Problem(
        name="test",
        baseline=Config.of({"tp-size": "8"}),
        items=(
            Item(key="tp-size", change=SetFlag("tp-size", "8")),
            Item(key="x", change=SetFlag("x", True)),
            Item(key="x-again", change=SetFlag("x", True)),
            Item(key="y", change=SetFlag("y", True)),
        ),
        requires=(("y", "tp-size"),),
    )
    cleaned = distinct(problem)
    assert [item.key for item in cleaned.items] == ["x", "y"]
    assert cleaned.allowed(keys("y"))


def test_join_lists_items_as_people_do() -> None:
    problem = problem_of("a", "b", "c")
    assert join(keys(), problem) == "the baseline"
    assert join(keys("b"), problem) == "b"
    assert join(keys("c", "a"), problem) == "a and c"
    assert join(keys("a", "b", "c"), problem) == "a, b and c"

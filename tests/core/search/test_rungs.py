"""Which refused sets are found by asking only, and what the rungs of a journal cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triage.core.config import Config, SetFlag
from triage.core.search.plan import next_trials
from triage.core.search.reduce import failing_sets
from triage.core.search.rungs import MASKS, Oracle, Refused, refused_sets, spent
from triage.core.search.subsets import Keys
from triage.core.trials import Done, Entry, Item, Problem, Seen
from triage.render.session_text import spent_text

NAMES = "abcdef"
PROBLEM = Problem(
    name="p",
    baseline=Config.of({"model-path": "/m"}),
    items=tuple(Item(key=n, change=SetFlag(n, True)) for n in NAMES),
)


def engine(*refused: str) -> tuple[Oracle, list[Keys]]:
    """An engine that refuses supersets of these, the first of them first; what it was asked."""
    asked: list[Keys] = []

    def oracle(keys: Keys) -> str | None:
        asked.append(keys)
        return next((bad for bad in refused if set(bad) <= keys), None)

    return oracle, asked


@pytest.mark.parametrize(
    ("refused", "found"),
    [
        ((), []),
        (("ab",), ["ab"]),
        (("a",), ["a"]),
        (("abc", "ef"), ["abc", "ef"]),
        (("ab", "cd", "f"), ["ab", "cd", "f"]),
    ],
)
def test_the_refused_sets_on_the_way_to_an_accepted_one_are_found(
    refused: tuple[str, ...], found: list[str]
) -> None:
    oracle, asked = engine(*refused)
    got = refused_sets(PROBLEM, oracle)
    assert sorted("".join(sorted(r.items)) for r in got) == sorted(found)
    assert all(r.signature == "".join(sorted(r.items)) for r in got)
    assert len(asked) == len(set(asked)), "nothing is asked twice"
    assert len(asked) <= 1 + (len(NAMES) + 1) * 2 * max(1, len(refused))


def test_a_refused_baseline_is_the_only_answer() -> None:
    assert refused_sets(PROBLEM, lambda _: "always") == (Refused(frozenset(), "always", ()),)


def test_what_the_rules_forbid_is_not_asked() -> None:
    problem = replace(PROBLEM, requires=(("a", "b"),), not_both=(("c", "d"),), goal="all")
    oracle, asked = engine("ab")
    got = refused_sets(problem, oracle)
    assert [r.items for r in got] == [frozenset("ab")]
    assert all(problem.allowed(keys) for keys in asked)


def test_a_search_of_all_failures_asks_the_pairs_that_a_single_one_hides() -> None:
    """{b, f} is refused, but so is b with e, and the best configuration drops b for both."""
    weighted = replace(
        PROBLEM,
        items=tuple(replace(i, weight=0.1 if i.key == "b" else 1.0) for i in PROBLEM.items),
    )
    oracle, _ = engine("be", "bf")
    few = refused_sets(weighted, oracle)
    every = refused_sets(replace(weighted, goal="all"), oracle)
    assert [r.items for r in few] == [frozenset("be")]
    assert {r.items for r in every} == {frozenset("be"), frozenset("bf")}


def test_an_endless_engine_is_not_asked_without_end() -> None:
    count = 0

    def oracle(keys: Keys) -> str | None:
        nonlocal count
        count += 1
        return f"failure {count}" if keys else None

    refused_sets(replace(PROBLEM, goal="all"), oracle)
    assert count <= 2 ** len(NAMES)


def refusal(number: int, items: str, **more: object) -> Entry:
    entry = Entry(
        number=number, items=frozenset(items), seen=Seen.FAILS, signature="s", phase="arg-validation",
        rung="resolution", early=True, seconds=0.1, saved_s=12.0,
    )  # fmt: skip
    return replace(entry, **more)  # type: ignore[arg-type]


def test_a_refused_pair_is_minimal_where_the_engine_accepts_each_half() -> None:
    halves = [
        Entry(number=n, items=frozenset(k), seen=Seen.PASSES, rung="resolution")
        for n, k in ((2, "a"), (3, "b"))
    ]
    pair = refusal(1, "ab")
    (found,) = failing_sets(PROBLEM, [pair, *halves])
    assert (found.items, found.minimal, found.implied) == (frozenset("ab"), True, False)
    (found,) = failing_sets(PROBLEM, [pair, halves[0]])
    assert not found.minimal
    late = replace(pair, rung="full", phase="weight-load", early=False)
    (found,) = failing_sets(PROBLEM, [late, *halves])
    assert not found.minimal, "that the engine accepts a half says nothing of a later failure"


def launches_to_the_end(problem: Problem, pairs: list[str], *, halves: bool) -> int:
    """Launches of a search after the pairs were found by asking, with or without their halves."""
    journal: list[Entry] = []
    for pair in pairs:
        journal.append(refusal(len(journal) + 1, pair, signature=pair))
        for half in pair if halves else "":
            journal.append(
                Entry(
                    number=len(journal) + 1, items=frozenset(half), seen=Seen.PASSES,
                    rung="resolution", phase="arg-validation",
                )
            )  # fmt: skip
    launches = 0
    while not isinstance(step := next_trials(problem, journal), Done):
        items, number = step[0].items, len(journal) + 1
        bad = next((pair for pair in pairs if set(pair) <= items), None)
        if bad is None:
            launches += 1
            journal.append(Entry(number=number, items=items, seen=Seen.STARTS, phase="serving"))
        else:
            journal.append(refusal(number, "".join(items), signature=bad))
        assert launches < 40
    assert step.reason == "found"
    assert {s.items for s in failing_sets(problem, journal)} == {frozenset(p) for p in pairs}
    return launches


def test_what_the_engine_accepts_saves_launches() -> None:
    """The best of six flags with two refused pairs takes the baseline and itself."""
    pairs = ["ab", "cd"]
    assert launches_to_the_end(PROBLEM, pairs, halves=True) == 2
    every = replace(PROBLEM, goal="all")
    with_halves = launches_to_the_end(every, pairs, halves=True)
    assert with_halves < launches_to_the_end(every, pairs, halves=False)


def test_what_a_journal_cost_and_saved() -> None:
    journal = [
        refusal(1, "ab"),
        Entry(number=2, items=frozenset("a"), seen=Seen.PASSES, rung="resolution", seconds=0.1),
        Entry(number=3, items=frozenset(), seen=Seen.STARTS, seconds=60.0),
        Entry(
            number=4, items=frozenset("c"), seen=Seen.STARTS, seconds=0.1, rung="resolution",
            same_as=3, saved_s=60.0,
        ),
        refusal(5, "d", rung="twin", seconds=20.0, saved_s=40.0, early=False),
    ]  # fmt: skip
    found = spent(journal)
    assert (found.launches, found.asked, found.twins) == (2, 3, 1)
    assert (found.saved_launches, found.saved_s) == (2, 112.0)
    assert found.seconds == pytest.approx(80.3)


def test_every_rung_says_what_it_masks() -> None:
    assert list(MASKS) == ["static", "resolution", "twin", "full"]
    assert all(MASKS.values())


def test_the_text_of_what_was_spent_says_what_its_rungs_do_not_see() -> None:
    text = spent_text(
        spent([refusal(1, "ab"), Entry(number=2, items=frozenset(), seen=Seen.STARTS)])
    )
    assert text.splitlines()[0] == (
        "1 launch; 1 answer without a launch: 1 launch and at least 12 s saved"
    )
    assert "resolution does not see: everything after the engine's own checks" in text
    assert "full does not see" not in text

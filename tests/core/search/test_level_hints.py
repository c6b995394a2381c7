"""A number in a failing message points at a level of a range."""

from __future__ import annotations

import random

import pytest

from triage.core.config import Config, SetFlag
from triage.core.search.hints import hinted_levels
from triage.core.search.plan import next_trials
from triage.core.search.recommend import best_started
from triage.core.trials import Done, Entry, Item, Problem, Seen
from triage.recipe import Range
from triage.recipe.levels import chain

POOL = "mem-fraction-static"
LEVELS, PAIRS = chain(Range(POOL, 0.90, 0.58, 0.02, 8.0))  # 16 levels: 0.88 down to 0.58


def problem(**more: object) -> Problem:
    return Problem(
        name="levels",
        baseline=Config.of({"m": "x", POOL: "0.9"}),
        items=(Item(key="long", change=SetFlag("long", True), weight=20),),
        repairs=LEVELS,
        requires=PAIRS,
        **more,  # type: ignore[arg-type]  # fields by name
    )


def launches(helps: int, hinted: int | None) -> int:
    """How many launches beside the two ends, if level `helps` is the first at which it starts."""
    wanted, journal = problem(), list[Entry]()
    while not isinstance(step := next_trials(wanted, journal), Done):
        items = step[0].items
        reached = sum(level.key in items for level in LEVELS)
        fails = "long" in items and reached <= helps
        hint = () if hinted is None or not fails else (LEVELS[min(15, max(0, hinted))].key,)
        journal.append(
            Entry(
                number=len(journal) + 1,
                items=items,
                seen=Seen.FAILS if fails else Seen.STARTS,
                signature="kv-pool-oom" if fails else None,
                phase="kv-pool-init" if fails else "serving",
                suspects=hint,
            )
        )
    assert sum(level.key in best_started(wanted, journal) for level in LEVELS) == helps + 1
    return len(journal) - 2


def test_a_value_of_a_remedy_becomes_the_first_level_that_reaches_it() -> None:
    wanted = problem()
    assert hinted_levels(wanted, [SetFlag(POOL, "0.83")]) == (f"{POOL}=0.82",)
    assert hinted_levels(wanted, [SetFlag(POOL, "0.82")]) == (f"{POOL}=0.82",)
    assert hinted_levels(wanted, [SetFlag(POOL, "0.1")]) == (f"{POOL}=0.58",)
    assert hinted_levels(wanted, [SetFlag(POOL, "auto"), SetFlag("other", "1")]) == ()


@pytest.mark.parametrize("off", [0, 1, -1])
def test_a_hint_saves_launches_also_if_it_is_a_level_off(off: int) -> None:
    helps = random.Random(f"hints/{off}").sample(range(1, 15), 7)
    with_hint = [launches(h, h + off) for h in helps]
    assert max(with_hint) <= (4 if off else 3)
    assert sum(with_hint) < sum(launches(h, None) for h in helps)


def test_a_hint_that_is_wrong_costs_launches_and_not_the_answer() -> None:
    assert launches(13, 1) <= 9

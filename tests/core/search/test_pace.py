"""How long a search takes: launches that are left, times the seconds of one."""

from __future__ import annotations

import pytest

from triage.core.config import Config, SetFlag
from triage.core.search.pace import Outlook, Pace, filled, outlook, pace_of
from triage.core.trials import Entry, Item, Problem, Seen

PROBLEM = Problem(
    name="t",
    baseline=Config.of({"m": "x"}),
    items=tuple(Item(key=n, change=SetFlag(n, True)) for n in "abcdef"),
)
STARTED = Entry(number=1, items=frozenset(), seen=Seen.STARTS, seconds=300.0)
FAILED = Entry(number=2, items=PROBLEM.keys(), seen=Seen.FAILS, signature="x", seconds=60.0)
PACE = Pace(300.0, 60.0, "measured")


def test_the_pace_is_the_mean_of_each_outcome_and_of_launches_in_full_only() -> None:
    asked = Entry(number=3, items=frozenset("a"), seen=Seen.FAILS, seconds=0.2, rung="resolution")
    lost = Entry(number=4, items=frozenset("a"), seen=Seen.UNRESOLVED, seconds=900.0)
    again = Entry(number=5, items=frozenset("b"), seen=Seen.FAILS, seconds=120.0)
    pace = pace_of([STARTED, FAILED, asked, lost, again], "here")
    assert pace == Pace(300.0, 90.0, "here")
    assert pace.say() == "a start takes 5 min, a failure 90 s: here"
    assert not pace_of([asked, lost], "here")
    assert Pace().say() == ""


def test_an_outcome_that_was_not_seen_is_taken_from_elsewhere_and_said_to_be() -> None:
    found = filled(pace_of([STARTED], "here"), Pace(100.0, 50.0, "there"))
    assert found == Pace(300.0, 50.0, "here, a failure's there")
    assert filled(Pace(), PACE) == PACE
    assert filled(PACE, Pace(1.0, 1.0, "there")) == PACE


def test_before_the_first_launch_the_fewest_are_two_that_start() -> None:
    ahead = outlook(PROBLEM, [], PACE)
    assert ahead.fewest == 2
    assert ahead.minutes is not None
    assert ahead.minutes[0] == pytest.approx(10.0)
    assert ahead.minutes[1] == pytest.approx(ahead.most * 3.0)


def test_the_outlook_shrinks_with_each_trial_and_with_each_node() -> None:
    one = outlook(PROBLEM, [STARTED, FAILED], PACE)
    assert one.total == one.most + 2
    two = outlook(PROBLEM, [STARTED, FAILED], PACE, nodes=2)
    assert one.minutes is not None
    assert two.minutes is not None
    assert one.minutes[1] / 2 < two.minutes[1] < one.minutes[1]
    done = outlook(
        PROBLEM, [STARTED, Entry(number=2, items=PROBLEM.keys(), seen=Seen.STARTS)], PACE
    )
    assert (done.most, done.say()) == (0, "nothing more to launch")


def test_minutes_are_told_only_where_somebody_knows() -> None:
    assert outlook(PROBLEM, [], Pace()).minutes is None
    assert Outlook(1, 3, 5, None).say() == "at most 3 more launches"
    assert Outlook(1, 1, 5, (1.0, 12.0)).say() == "at most 1 more launch, 12 min"

"""The table of flags and launches below a search in a terminal."""

from __future__ import annotations

from dataclasses import replace

from triage.core.config import Config, SetFlag
from triage.core.trials import Entry, Item, Problem, Seen
from triage.render.trials_grid import LEGEND, grid

PROBLEM = Problem(
    name="t",
    baseline=Config.of({"tp-size": "8"}),
    items=tuple(
        Item(key=key, change=SetFlag(key, value))
        for key, value in (
            ("ep-size", "8"), ("enable-nccl-nvls", True),
            ("a-flag-with-a-name-that-is-longer-than-any", "1"),
        )
    ),
)  # fmt: skip
FAILED = Entry(number=2, items=PROBLEM.keys(), seen=Seen.FAILS, signature="cublas")
JOURNAL = [
    Entry(number=1, items=frozenset(), seen=Seen.STARTS),
    FAILED,
    replace(FAILED, number=3, items=frozenset({"ep-size"}), searching="cublas", signature="none-x"),
    replace(FAILED, number=4, searching="cublas"),
    Entry(number=5, items=frozenset({"ep-size"}), seen=Seen.UNRESOLVED),
]


def test_each_launch_is_a_column_with_its_flags_and_its_verdict() -> None:
    lines = grid(PROBLEM, JOURNAL, {6: frozenset({"enable-nccl-nvls"})})
    assert lines == [
        "                                      1  2  3  4  5  6",
        "ep-size 8                             ·  ●  ●  ●  ●  ·",
        "enable-nccl-nvls                      ·  ●  ·  ●  ·  ●",
        "a-flag-with-a-name-that-is-longer-..  ·  ●  ·  ●  ·  ·",
        "                                      S  F  O  F  ?  ▸",
        LEGEND,
    ]


def test_several_launches_at_the_same_time_are_a_column_each() -> None:
    lines = grid(PROBLEM, JOURNAL[:2], {4: PROBLEM.keys(), 3: frozenset({"ep-size"})})
    assert lines[0].split() == ["1", "2", "3", "4"]
    assert lines[1].split()[2:] == ["·", "●", "●", "●"]
    assert lines[4].split() == ["S", "F", "▸", "▸"]


def test_no_line_is_wider_than_the_terminal_and_the_newest_launches_stay() -> None:
    many = [replace(FAILED, number=n) for n in range(1, 60)]
    for width in (20, 40, 80, 200):
        lines = grid(PROBLEM, many, width=width)
        assert lines
        assert max(map(len, lines)) <= width
        assert lines[0].endswith("59")


def test_a_terminal_too_small_for_a_table_gets_none() -> None:
    assert grid(PROBLEM, JOURNAL, width=5) == []
    assert grid(PROBLEM, JOURNAL, height=4) == []


def test_rows_that_do_not_fit_are_counted() -> None:
    lines = grid(PROBLEM, JOURNAL, height=6)
    assert lines[2].strip() == "and 2 more"
    assert len(lines) == 5

"""The largest value that works: within log2 launches, whatever the values do."""

from __future__ import annotations

from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.core.search.largest import (
    Ask,
    Contradiction,
    Largest,
    NoneWorks,
    grid,
    most_launches,
    next_value,
)


def search(count: int, works: int, tried: dict[int, bool] | None = None) -> tuple[object, int]:
    """The answer where the first `works` of `count` values work, and the launches it took."""
    known, launches = dict(tried or {}), 0
    while isinstance(ask := next_value(count, known), Ask):
        assert ask.index not in known
        known[ask.index] = ask.index < works
        launches += 1
        assert launches <= 64
    return ask, launches


@given(st.integers(1, 5000), st.data())
def test_the_largest_is_found_within_log2_launches(count: int, data: st.DataObject) -> None:
    works = data.draw(st.integers(0, count))
    answer, launches = search(count, works)
    if works == 0:
        assert answer == NoneWorks()
    else:
        assert answer == Largest(index=works - 1, bounded=works < count)
    assert launches <= most_launches(count) == ceil(log2(count + 1))


@given(st.integers(2, 2000), st.data())
def test_what_is_left_is_never_said_too_small(count: int, data: st.DataObject) -> None:
    works = data.draw(st.integers(0, count))
    known: dict[int, bool] = {}
    promised = count
    while isinstance(ask := next_value(count, known), Ask):
        assert ask.left < promised
        promised = ask.left
        known[ask.index] = ask.index < works
    assert promised >= 0


def test_what_is_known_already_is_not_asked_again() -> None:
    answer, launches = search(32, 20, {31: False, 0: True})
    assert answer == Largest(index=19, bounded=True)
    assert launches <= 5
    assert next_value(1, {0: False}) == NoneWorks()
    assert next_value(1, {0: True}) == Largest(index=0, bounded=False)


def test_answers_that_contradict_each_other_end_it() -> None:
    assert next_value(8, {5: True, 2: False}) == Contradiction(works=5, fails=2)


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (("256", "1024", "256"), ("256", "512", "768", "1024")),
        (("0.7", "0.9", "0.1"), ("0.7", "0.8", "0.9")),
        (("0.70", "0.75", "0.02"), ("0.7", "0.72", "0.74", "0.75")),
        (("1", "4"), ("1", "2", "3", "4")),
        (("16", "100", "40"), ("16", "56", "96", "100")),
    ],
)
def test_a_grid_holds_both_ends(words: tuple[str, ...], values: tuple[str, ...]) -> None:
    assert grid(*words) == values


def test_the_usual_grid_has_about_32_values() -> None:
    assert len(grid("1024", "32768")) in (32, 33, 34)
    assert len(grid("0.5", "0.9")) in (32, 33, 34, 35)


@pytest.mark.parametrize(
    "words", [("9", "1"), ("1", "1"), ("a", "2"), ("1", "2", "0"), ("1", "nan"), ("0", "1", "1e-9")]
)
def test_what_is_no_range_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"number|below|too many"):
        grid(*words)

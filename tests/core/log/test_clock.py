"""Printed times are compared as `datetime` would."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.core.log.clock import elapsed, seconds

times = st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2199, 12, 31))  # noqa: DTZ001


@given(times, times)
def test_the_time_between_two_lines_is_that_of_the_calendar(one: datetime, other: datetime) -> None:
    first, last = sorted((one, other))
    true = round((last - first).total_seconds(), 3)
    assert elapsed(first.isoformat(), last.isoformat()) == true
    assert elapsed(last.isoformat(), first.isoformat()) == 0.0


@given(times, st.integers(1, 86_400_000))
def test_a_second_is_a_second_across_the_end_of_a_month(start: datetime, after: int) -> None:
    end = start + timedelta(milliseconds=after)
    one, other = seconds(start.isoformat()), seconds(end.isoformat())
    assert one is not None
    assert other is not None
    assert other - one == pytest.approx(after / 1000, abs=1e-4)


@pytest.mark.parametrize(
    "time",
    ["12:00:00", "Jul  1 12:00:00", "07-01 12:00:00", "2026-02-30T12:00:00", "2026-13-01T12:00:00",
     "2026-07-01T24:00:00", "2026-07-01T12:60:00", "2026-07-0xT12:00:00", None],
)  # fmt: skip
def test_what_is_no_time_with_a_date_has_no_seconds(time: str | None) -> None:
    assert seconds(time) is None
    assert elapsed("2026-07-01T12:00:00", time) is None


@pytest.mark.parametrize("tail", [",250", ".250000000Z", ".25Z", ".250+02:00"])
def test_fractions_count_and_zones_do_not(tail: str) -> None:
    assert elapsed("2026-07-01T12:00:00", f"2026-07-01T12:00:01{tail}") == 1.25

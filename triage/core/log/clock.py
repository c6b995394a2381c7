"""Printed times, to be compared with each other.

In:  a time as a log prints it. Out: seconds, or None.
Not: time zones, or the time now.

`datetime` could do it; to import that takes longer than to read a short log.
"""

from __future__ import annotations

from functools import lru_cache

_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def seconds(time: str | None) -> float | None:
    """Seconds of a printed time with a date, for comparison only; None without a date."""
    found = _microseconds(time)
    return None if found is None else found / 1e6


def elapsed(first: str | None, now: str | None) -> float | None:
    """Seconds from one printed time to another, to a thousandth, never less than 0.

    None if one of them has no date.
    """
    start, end = _microseconds(first), _microseconds(now)
    return None if start is None or end is None else max(0.0, round((end - start) / 1e6, 3))


@lru_cache(maxsize=1024)  # ranks come along together
def _microseconds(time: str | None) -> int | None:
    """Since the year 0; what stands behind the fraction of a second is left out."""
    if time is None or len(time) < 19 or time[4:5] != "-":  # noqa: PLR2004
        return None
    try:
        year, month, day = int(time[:4]), int(time[5:7]), int(time[8:10])
        hour, minute, second = int(time[11:13]), int(time[14:16]), int(time[17:19])
    except ValueError:
        return None
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not (1 <= month <= 12 and 1 <= day <= _DAYS[month - 1] + (leap and month == 2)):  # noqa: PLR2004
        return None
    if hour > 23 or minute > 59 or second > 59:  # noqa: PLR2004
        return None
    before = year - 1  # whole years, each with its leap day if it has one
    days = 365 * before + before // 4 - before // 100 + before // 400
    days += sum(_DAYS[: month - 1]) + (leap and month > 2) + day  # noqa: PLR2004
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + _fraction(time)


def _fraction(time: str) -> int:
    """Microseconds behind the seconds."""
    if time[19:20] not in (".", ","):
        return 0
    digits = ""
    for char in time[20:26]:
        if not "0" <= char <= "9":
            break
        digits += char
    return int(digits.ljust(6, "0"))

"""Printed times, to be compared with each other.

In:  a time as a log prints it. Out: seconds, or None.
Not: time zones, or the time now.
"""

from __future__ import annotations


def seconds(time: str | None) -> float | None:
    """Seconds of a printed time with a date, for comparison only; None without a date."""
    if time is None or len(time) < 19 or time[4:5] != "-":  # noqa: PLR2004
        return None
    try:
        year, month, day = int(time[:4]), int(time[5:7]), int(time[8:10])
        hour, minute, second = int(time[11:13]), int(time[14:16]), int(time[17:19])
    except ValueError:
        return None
    return float((((year * 12 + month) * 31 + day) * 24 + hour) * 3600 + minute * 60 + second)

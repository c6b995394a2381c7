"""Seconds and bytes: parse and format, nothing else."""

from __future__ import annotations

from triage.core.regex import regex

_DURATION = regex(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|)")
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str | float) -> float:
    """Seconds of `90s`, `10m`, `1h30m`, `250ms`, or of a bare number of seconds.

    Raises:
        ValueError: it is none of these, or not positive.
    """
    if isinstance(text, int | float):
        seconds = float(text)
    else:
        rest, seconds = text.strip(), 0.0
        while rest:
            match = _DURATION.match(rest)
            if match is None or (match[2] == "" and match.end() != len(text.strip())):
                seconds = 0.0
                break
            seconds += float(match[1]) * _SECONDS[match[2]]
            rest = rest[match.end() :].strip()
    if not seconds > 0 or seconds == float("inf"):
        raise ValueError(f"{text!r} is not a duration like 90s, 10m or 1h30m")
    return seconds


def format_seconds(seconds: float) -> str:
    """`4.2 s`, `71 s`, `12 min`, `1 h 05 min`: as precise as a person needs."""
    if seconds < 10:  # noqa: PLR2004
        return f"{seconds:.1f} s"
    if seconds < 180:  # noqa: PLR2004
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"  # noqa: PLR2004

"""The lines of a log around one of them, and when they were printed.

In:  a log of any size, a line's number. Out: an Excerpt.
Not: diagnosing (logs.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from triage.core.log.lines import clean
from triage.session.contents import numbered

BEFORE, AFTER = 5, 3
LONGEST = 400  # characters of a line that are quoted
_HEAD = 200  # lines, and bytes of a line, in which a date is looked for
_DATED = re.compile(rb"\d\d:\d\d:\d\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Numbered lines, without what other programs wrapped around them.

    `at_s` is the line's second, `end_s` that of the last dated line, both since the first
    dated line; None where no date is printed.
    """

    lines: tuple[tuple[int, str], ...] = ()
    at_s: float | None = None
    end_s: float | None = None


def excerpt(
    log: Path, number: int, text: str = "", *, before: int = BEFORE, after: int = AFTER
) -> Excerpt:
    """The lines around line `number` (from 1; 0: none) of a log; see triage.session.contents.

    Where that line holds a whole traceback, the lines in it around `text` are quoted.
    """
    quoted: list[tuple[int, str]] = []
    first = now = None
    last = b""
    for count, raw in numbered(log):
        near = number - before <= count <= number + after
        if near or (first is None and count <= _HEAD):
            time = _time(raw)
            first = first or time
            now = time if count <= number and time else now
        if near:
            inner = _inner(raw, text, before, after) if count == number and text else []
            shown = inner or [raw.decode("utf-8", "replace").rstrip("\r\n")]
            quoted += [(count, _cut(one)) for one in shown]
        if _DATED.search(raw[:_HEAD]):
            last = raw
    return Excerpt(
        lines=tuple(quoted), at_s=_between(first, now), end_s=_between(first, _time(last))
    )


def _inner(raw: bytes, text: str, before: int, after: int) -> list[str]:
    """The lines around a text within a line that holds several; empty for any other line."""
    if b"\\n" not in raw:
        return []
    lines = [line.text for line in clean(raw, 0, 1)]
    at = next((n for n, line in enumerate(lines) if line.startswith(text[:LONGEST])), -1)
    return lines[max(0, at - before) : at + after + 1] if at >= 0 and len(lines) > 1 else []


def _time(raw: bytes) -> str | None:
    return next(iter(clean(raw, 0, 1))).time


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ... ({len(text)} characters)"


def _between(first: str | None, now: str | None) -> float | None:
    """Seconds between two printed times; None if one of them has no date."""
    if not first or not now:
        return None
    try:
        start, end = (datetime.fromisoformat(t.replace(",", ".")) for t in (first, now))
    except ValueError:
        return None
    return max(0.0, (end.replace(tzinfo=None) - start.replace(tzinfo=None)).total_seconds())

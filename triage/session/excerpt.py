"""The lines of a log around one of them, and when they were printed.

In:  a log of any size, a line's number. Out: an Excerpt.
Not: diagnosing (logs.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from triage.core.log.lines import Line, clean
from triage.session.contents import blocks

BEFORE, AFTER = 5, 3
LONGEST = 400  # characters of a line that are quoted
_HEAD = 200  # lines in which a date is looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Numbered lines, without what other programs wrapped around them.

    `at_s` is the line's second, `end_s` that of the last dated line, both since the first
    dated line; None where no date is printed.
    """

    lines: tuple[tuple[int, str], ...] = ()
    at_s: float | None = None
    end_s: float | None = None


def excerpt(log: Path, number: int, *, before: int = BEFORE, after: int = AFTER) -> Excerpt:
    """The lines around line `number` (from 1; 0: none) of a log; see triage.session.contents."""
    quoted: list[tuple[int, str]] = []
    first = now = last = None
    count = 0
    for block in blocks(log):
        lines = block.split(b"\n")
        tail = lines[:-1] if block.endswith(b"\n") else lines
        for raw in tail:
            count += 1
            near = number - before <= count <= number + after
            if near or (first is None and count <= _HEAD):
                line = _last(raw, count)
                first = first or line.time
                now = line.time if count <= number and line.time else now
                if near:
                    quoted.append((count, _cut(raw.decode("utf-8", "replace").rstrip("\r\n"))))
        for raw in reversed(tail[-_HEAD:]):
            if time := _last(raw, 0).time:
                last = time
                break
    return Excerpt(lines=tuple(quoted), at_s=_between(first, now), end_s=_between(first, last))


def _last(raw: bytes, number: int) -> Line:
    return list(clean(raw, 0, number))[-1]


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

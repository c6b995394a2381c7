"""A comparison of cases for reading, and as a JSON document.

In:  a Comparison. Out: text of a line a difference; `triage.comparison/1`.
Not: formats of other programs (junit.py, sarif.py, annotations.py).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from triage.core.results import Comparison, Result, Status
from triage.render.reported import headline, shown

_WORDS = {
    Status.EXPECTED: "as expected",
    Status.DIFFERS: "different",
    Status.UNREADABLE: "unreadable",
    Status.MENDED: "marked as known miss, but as expected",
    Status.KNOWN_MISS: "known to be missed",
}


def comparison_text(comparison: Comparison) -> str:
    """The counts, then each case that is not as it should be, then what to type."""
    counts = {status: comparison.count(status) for status in _WORDS}
    told = ", ".join(f"{n} {_WORDS[status]}" for status, n in counts.items() if n)
    cases = len(comparison.results)
    lines = [f"{cases} case{'' if cases == 1 else 's'}: {told}"]
    differing = [r for r in comparison.results if r.status in _SHOWN]
    for result in differing:
        lines += ["", *_differing(result)]
    if comparison.without:
        some = comparison.without[:3]
        more = len(comparison.without) - len(some)
        named = ", ".join(some) + (f" and {more} more" if more else "")
        lines += ["", f"not compared, for there is no case.yaml beside it: {named}"]
    if first := next((r for r in differing if r.status is Status.DIFFERS), None):
        lines += ["", f"next: triage classify --explain {shlex.quote(first.place)}"]
    return "\n".join(lines)


_SHOWN = (Status.DIFFERS, Status.UNREADABLE, Status.MENDED)


def _differing(result: Result) -> Iterator[str]:
    where = f"{result.place}:{result.line}" if result.line else result.place
    match result.status:
        case Status.UNREADABLE:
            yield f"{result.name}: cannot be read"
            yield f"  {shown(result.note)}"
        case Status.MENDED:
            yield f"{result.name}  {where}"
            yield "  as expected now; set known_miss to false"
        case _:
            yield f"{result.name}  {where}"
            for difference in result.differences:
                line = f"line {difference.line}: " if difference.line else ""
                yield f"  {line}{difference.key}: {shown(difference.say)}"


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """`triage.comparison/1`: every case, by path, with what differs."""
    return {
        "schema": "triage.comparison/1",
        "folder": comparison.folder,
        "cases": len(comparison.results),
        "counts": {status.value: comparison.count(status) for status in _WORDS},
        "results": [_result(result) for result in comparison.results],
        "without_case": list(comparison.without),
    }


def _result(result: Result) -> dict[str, Any]:
    d = result.diagnosis
    return {
        "name": result.name,
        "log": result.place,
        "status": result.status.value,
        "expected": result.expected,
        "cause": d.cause if d else None,
        "found": headline(d) if d else None,
        "line": result.line or None,
        "differences": [
            {"key": one.key, "say": one.say, "line": one.line or None} for one in result.differences
        ],
        "note": result.note,
    }

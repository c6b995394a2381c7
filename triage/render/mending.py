"""What was tried to get from a failure to a server that works, as document and as text.

In:  a Mending. Out: `triage.mending/1`; lines for a terminal.
Not: a single confirmation (confirmation.py).
"""

from __future__ import annotations

import textwrap

from triage.core.handover.mending import Attempt, Mending
from triage.core.units import format_seconds
from triage.core.wording import spell
from triage.render.confirmation import confirmation_document, confirmation_text
from triage.render.documents import Json, change_document
from triage.render.markdown import visible

WIDTH = 80


def mending_document(found: Mending) -> dict[str, Json]:
    """`triage.mending/1`: every attempt in order, how it ended, and the proof of the last."""
    shown = found.confirmation
    return {
        "schema": "triage.mending/1",
        "works": found.works,
        "stop": found.stop,
        "say": found.say,
        "source": found.source,
        "cause": found.cause,
        "title": found.title,
        "launches": found.launches,
        "attempts": [_attempt(attempt) for attempt in found.attempts],
        "command": found.text,
        "diff": found.diff,
        "notes": list[Json](found.notes),
        "confirmation": None if shown is None else _part(confirmation_document(shown)),
    }


def _part(document: dict[str, Json]) -> dict[str, Json]:
    """A document as part of another: without its own name."""
    return {key: value for key, value in document.items() if key != "schema"}


def _attempt(attempt: Attempt) -> dict[str, Json]:
    shown = attempt.shown
    return {
        "say": attempt.say,
        "fault": attempt.fault,
        "changes": [change_document(change) for change in attempt.changes],
        "works": attempt.works,
        "reason": shown.reason,
        "count": {"up": shown.up, "starts": len(shown.starts)},
        "cause": attempt.cause,
        "title": attempt.title,
        "phase": attempt.phase,
        "seconds": attempt.seconds,
        "trial": shown.folder,
    }


def mending_text(found: Mending) -> str:
    """The attempts, one or two lines each; then the proof and the command, or why there is none."""
    shown = found.confirmation
    mark = "simulated: " if shown is not None and shown.simulated else ""
    lines = [_wrapped(f"{mark}{found.cause}: {found.title}", "  ")] if found.cause else []
    lines += [line for n, a in enumerate(found.attempts, start=1) for line in _lines(n, a)]
    if not found.works:
        word = "flaky" if found.stop == "flaky" else "no working configuration"
        lines += ["", _wrapped(f"{word}: {found.say}", "  ")]
        if found.stop == "flaky" and found.confirmation is not None:
            lines.append(confirmation_text(found.confirmation))
        return "\n".join(lines)
    lines += ["", _wrapped(found.say, "  ")]
    if found.confirmation is not None:
        lines.append(confirmation_text(found.confirmation))
    if found.diff:
        lines += ["", found.diff]
    if found.text:
        lines += ["", found.text.rstrip("\n")]
    lines += [_wrapped(f"note: {note}", "  ") for note in found.notes]
    return "\n".join(lines)


def _lines(number: int, attempt: Attempt) -> list[str]:
    changes = ", ".join(map(spell, attempt.changes)) or "unchanged"
    took = format_seconds(attempt.seconds)
    shown = attempt.shown
    if attempt.works:
        came = f"passed ({shown.count} starts, {took})"
    elif shown.flaky:
        came = f"{shown.reason} ({took})"
    elif attempt.cause:
        came = f"fails: {attempt.cause} in {attempt.phase} ({took})"
    else:
        came = f"fails: {shown.reason} ({took})"
    return [_wrapped(f"attempt {number}  {changes}", "    "), _wrapped(f"  {came}", "    ")]


def _wrapped(text: str, later: str) -> str:
    return textwrap.fill(
        visible(" ".join(text.splitlines())).rstrip(),
        WIDTH,
        subsequent_indent=later,
        break_on_hyphens=False,
        break_long_words=False,
    )

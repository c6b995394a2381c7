"""A log cut down to what two confusable causes share: neither is named as if it were sure.

For each pair of causes that are confused with each other, the log of one keeps the lines that a log
of the other has as well. What is left speaks for both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from triage.core.causes import Cause
from triage.core.log.diagnose import diagnose
from triage.core.log.lines import clean
from triage.knowledge.cases import load_cases
from triage.knowledge.stored import load_causes

FOLDER = Path(__file__).parents[2] / "fixtures/cases"
_NUMBER = re.compile(r"\d+")


@cache
def lines_of(log: Path) -> tuple[tuple[bytes, str], ...]:
    """Raw lines, and each without its wrappers and numbers."""
    found = []
    for number, raw in enumerate(log.read_bytes().split(b"\n"), 1):
        texts = [_NUMBER.sub("#", line.text) for line in clean(raw, 0, number)]
        found.append((raw, texts[0]))
    return tuple(found)


def pairs(causes: dict[str, Cause]) -> Iterator[tuple[Cause, Cause, Path, Path]]:
    logs: dict[str, Path] = {}
    for case in load_cases(FOLDER):
        cause = case.expect.get("cause")
        if isinstance(cause, str) and not case.known_miss:
            logs.setdefault(cause, case.log)
    for name, log in logs.items():
        for other in causes[name].confused_with:
            if other in logs:
                yield causes[name], causes[other], log, logs[other]


def includes(one: Cause, other: Cause) -> bool:
    """Whether one of two says what the other says, and more: that the other is shown is true."""
    return other.id in one.explains or one.id in other.yields_to


def test_of_two_causes_with_the_same_evidence_none_is_named_with_high_confidence() -> None:
    causes = {cause.id: cause for cause in load_causes()}
    sure, tried = [], 0
    for one, other, log, its in pairs(causes):
        tried += 1
        shared = {text for _, text in lines_of(its)}
        kept = b"\n".join(raw for raw, text in lines_of(log) if text in shared)
        found = diagnose([kept + b"\n"], load_causes())
        claimed = found.cause if found.confidence == "high" else None
        first, second = (one, other) if claimed == other.id else (other, one)
        if claimed in (one.id, other.id) and not includes(first, second):
            sure.append(f"{log.parent.name} with {its.parent.name}: {claimed}")
    assert tried > 300
    assert sure == []

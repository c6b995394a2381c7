"""What each result means to a consumer of reports, the same in JUnit, SARIF and annotations.

In:  a Result. Out: Said: whether it is a failure, its rule, a title, a message.
Not: any format (junit.py, sarif.py, annotations.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from triage.core.diagnosis import Diagnosis
from triage.core.printable import visible
from triage.core.results import Difference, Result, Status

UNKNOWN = "unknown-failure"
_LONGEST = 400  # characters of a log's line in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A result in words.

    `kind` is passed, failed, skipped or error; `rule` is a cause's id where there is one.
    """

    kind: str
    rule: str
    title: str = ""
    message: str = ""
    details: tuple[str, ...] = ()


def said(result: Result) -> Said:
    """The result as every report tells it."""
    d = result.diagnosis
    match result.status:
        case Status.UNREADABLE:
            return Said(
                kind="error", rule="unreadable-case", title="unreadable case", message=result.note
            )
        case _ if d is None:
            return Said(kind="error", rule="unreadable-case", message=result.note)
        case Status.EXPECTED:
            return Said(kind="passed", rule=rule_of(d))
        case Status.KNOWN_MISS:
            why = result.note or "known miss"
            return Said(
                kind="skipped", rule=rule_of(d), title="known miss", message=why, details=_lines(d)
            )
        case Status.MENDED:
            return Said(
                kind="failed",
                rule=rule_of(d),
                title="known miss that is none any more",
                message="the case is as expected now: set known_miss to false",
            )
        case Status.DIFFERS:
            told = tuple(sentence(difference) for difference in result.differences)
            return Said(
                kind="failed",
                rule=rule_of(d),
                title=f"differs: expected {result.expected or 'no cause'}, found {headline(d)}",
                message="; ".join(told),
                details=(*told, *_lines(d)),
            )
        case _:
            return _uncompared(d)


def _uncompared(d: Diagnosis) -> Said:
    kind = {"healthy": "passed", "empty": "skipped", "interrupted": "error"}.get(
        d.outcome, "failed"
    )
    return Said(
        kind=kind,
        rule=rule_of(d),
        title="" if kind == "passed" else headline(d),
        message="" if kind == "passed" else message_of(d),
        details=_lines(d),
    )


def rule_of(d: Diagnosis) -> str:
    """The rule that a diagnosis falls under: its cause, else what sort of end it was."""
    return d.cause or (UNKNOWN if d.outcome == "failed" else d.outcome)


def headline(d: Diagnosis) -> str:
    """The diagnosis in a few words."""
    where = "" if d.phase == "unknown" or d.outcome in ("healthy", "empty") else f" in {d.phase}"
    if d.cause:
        return f"{d.cause}{where}"
    match d.outcome:
        case "failed":
            mark = f" ({d.fingerprint})" if d.fingerprint else ""
            return f"unknown failure{where}{mark}"
        case "empty":
            return "no line of an engine"
        case outcome:
            return f"{outcome}{where}"


def message_of(d: Diagnosis) -> str:
    """The diagnosis in a sentence: its title, then the decisive line."""
    root = shown(d.root.text) if d.root else ""
    title = d.title or headline(d)
    ranks = "" if d.ranks_total <= 1 or not d.ranks else f" on {', '.join(d.ranks[:4])}"
    return f"{title}{ranks}" + (f": {root}" if root else "")


def _lines(d: Diagnosis) -> tuple[str, ...]:
    """What the diagnosis rests on, a line each."""
    told = [f"found: {headline(d)}, {d.confidence} confidence"]
    if d.root:
        told.append(f"line {d.root.line} ({d.root.rank}): {shown(d.root.text)}")
    told += [f"line {decoy.line} misleads: {shown(decoy.why)}" for decoy in d.decoys[:5]]
    told += [f"helps: {advice.say}" for advice in d.remedies[:3]]
    if d.fingerprint:
        told.append(f"fingerprint: {d.fingerprint}")
    return tuple(told)


def sentence(difference: Difference) -> str:
    """A difference in one line."""
    return f"{difference.key}: {shown(difference.say)}"


def shown(text: str) -> str:
    """Text of a log on one line, without controls, cut."""
    line = " ".join(visible(text).encode("utf-8", "replace").decode().split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 4] + " ..."

"""A check: a judgement of facts that finds what would break a launch, before one is made.

In:  Facts. Out: Outcome per check: sound, found, unavailable or not-asked.
Not: reading facts (triage.machine) or wording a report (triage.render).

A judge takes facts by `known(...)`; if one of them is unavailable the check says so, and
what it had found by then stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from triage.core.doctor.facts import NOT_ASKED, Facts
from triage.core.machine.facts import MissingFactError
from triage.core.records import dataclass

Severity = Literal["error", "warning", "note"]
State = Literal["sound", "found", "unavailable", "not-asked"]
GROUPS = ("gpus", "links", "packages", "tools", "host", "files", "model", "draft", "flags")


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing that is wrong: a sentence, the facts that show it, the command that mends it.

    `severity` is given where it differs from the usual one of the check.
    """

    say: str
    evidence: tuple[str, ...] = ()
    fix: str = ""
    severity: Severity | None = None


Judge = Callable[[Facts], Iterable[Hit]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What is looked at. `sound` says in a few words what it means that nothing was found.

    `prevents` are ids of causes that a finding would have come to; `hardware` marks a
    fault of the machine, with which no search for flags makes sense.
    """

    id: str
    group: str
    severity: Severity
    sound: str
    breaks: str
    source: str
    judge: Judge
    prevents: tuple[str, ...] = ()
    hardware: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A hit with all that its check knows."""

    id: str
    group: str
    severity: Severity
    say: str
    evidence: tuple[str, ...]
    breaks: str
    fix: str
    source: str
    prevents: tuple[str, ...]
    hardware: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one check; `reason` says why it could not be made."""

    check: Check
    state: State
    findings: tuple[Finding, ...] = ()
    reason: str = ""


def check(
    name: str,
    *,
    group: str,
    severity: Severity,
    sound: str,
    breaks: str,
    source: str,
    prevents: Sequence[str] = (),
    hardware: bool = False,
) -> Callable[[Judge], Check]:
    """Make a check of the judging function below it."""

    def make(judge: Judge) -> Check:
        return Check(
            id=name,
            group=group,
            severity=severity,
            sound=sound,
            breaks=breaks,
            source=source,
            judge=judge,
            prevents=tuple(prevents),
            hardware=hardware,
        )

    return make


def examine(facts: Facts, checks: Iterable[Check]) -> tuple[Outcome, ...]:
    """Make every check; never raises for a fact that is missing."""
    return tuple(_examine(facts, one) for one in checks)


def _examine(facts: Facts, one: Check) -> Outcome:
    found: list[Finding] = []
    reason = ""
    asked = True
    try:
        for hit in one.judge(facts):
            found.append(_finding(one, hit))  # noqa: PERF401  what came before a missing fact stays
    except MissingFactError as missing:
        reason = missing.fact.reason
        asked = missing.fact not in NOT_ASKED
    if found:
        return Outcome(check=one, state="found", findings=tuple(found), reason=reason)
    if reason:
        return Outcome(check=one, state="unavailable" if asked else "not-asked", reason=reason)
    return Outcome(check=one, state="sound")


def _finding(one: Check, hit: Hit) -> Finding:
    return Finding(
        id=one.id,
        group=one.group,
        severity=hit.severity or one.severity,
        say=hit.say,
        evidence=hit.evidence,
        breaks=one.breaks,
        fix=hit.fix,
        source=one.source,
        prevents=one.prevents,
        hardware=one.hardware,
    )


def findings(outcomes: Iterable[Outcome]) -> tuple[Finding, ...]:
    """All findings: errors first, then by group in the usual order."""
    rank = {"error": 0, "warning": 1, "note": 2}
    every = [finding for outcome in outcomes for finding in outcome.findings]
    return tuple(sorted(every, key=lambda f: (rank[f.severity], GROUPS.index(f.group))))

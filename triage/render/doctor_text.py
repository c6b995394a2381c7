"""An examination for a terminal: quiet where all is sound, grouped where it is not.

In:  Outcomes. Out: text of at most 80 columns.
Not: documents (doctor_documents.py).
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence

from triage.core.doctor.checks import GROUPS, Finding, Outcome, findings

WIDTH = 80
_MARGIN = 11


def doctor_text(outcomes: Iterable[Outcome], *, every: bool = False) -> str:
    """The report: how many findings, each with evidence and fix, and what was not looked at."""
    outcomes = tuple(outcomes)
    found = findings(outcomes)
    parts = [_summary(outcomes, found)]
    for group in GROUPS:
        own = [finding for finding in found if finding.group == group]
        if own:
            parts.append("\n".join([group, *(_finding(finding) for finding in own)]))
    if every:
        parts.append("\n".join(_line(outcome) for outcome in outcomes))
    elif missing := _not_made(outcomes):
        parts.append(missing)
    return "\n\n".join(parts)


def _summary(outcomes: Sequence[Outcome], found: Sequence[Finding]) -> str:
    count = Counter(finding.severity for finding in found)
    words = [
        f"{count[severity]} {severity}{'s' * (count[severity] > 1)}"
        for severity in ("error", "warning", "note")
        if count[severity]
    ]
    states = Counter(outcome.state for outcome in outcomes)
    sound = f"{states['sound']} checks sound"
    not_made = states["unavailable"] + states["not-asked"]
    tail = f", {not_made} not made" if not_made else ""
    return f"{', '.join(words) if words else 'nothing found'}; {sound}{tail}"


def _finding(finding: Finding) -> str:
    lines = _wrapped(f"  {finding.severity:<8} ", f"{finding.id}: {finding.say}")
    for fact in finding.evidence:
        lines += _wrapped(" " * _MARGIN, fact)
    lines += _wrapped(" " * _MARGIN + "breaks ", finding.breaks)
    if finding.fix:
        lines.append(" " * _MARGIN + f"fix    {finding.fix}")  # whole, so that it can be pasted
    lines.append(" " * _MARGIN + f"see    {finding.source}")
    return "\n".join(lines)


def finding_line(finding: Finding) -> str:
    """One finding in a line, as a search shows it before its first launch."""
    return f"doctor: {finding.severity}: {finding.say} ({finding.id})"


def _wrapped(first: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _not_made(outcomes: Sequence[Outcome]) -> str:
    """Why checks were not made, each reason once, with how many checks it cost."""
    reasons = Counter(o.reason for o in outcomes if o.state == "unavailable")
    asked = Counter(o.reason for o in outcomes if o.state == "not-asked")
    lines = []
    for reason, count in [*reasons.most_common(), *asked.most_common()]:
        lines += _wrapped(f"  {count:>3}  ", reason)
    return "\n".join(["not made", *lines]) if lines else ""


def _line(outcome: Outcome) -> str:
    """One check and what came of it."""
    told = {
        "sound": outcome.check.sound,
        "found": outcome.findings[0].say if outcome.findings else "",
    }.get(outcome.state, outcome.reason)
    first = f"  {outcome.state:<12}{outcome.check.id:<24}"
    return "\n".join(_wrapped(first, told or outcome.check.sound))

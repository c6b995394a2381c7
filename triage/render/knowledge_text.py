"""A cause for reading: plain text of 80 columns, or a JSON document.

In:  a Cause. Out: text or a dict.
Not: printing (triage.cli).
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from triage.core.causes import Cause, Origin, Remedy, Role
from triage.core.doctor.catalogue import told_by
from triage.core.handover.general import remedy_words
from triage.core.log.compute import in_words

WIDTH = 80


def cause_text(cause: Cause) -> str:
    """The cause as a tired person reads it: what, why, what helps, what misleads."""
    parts = [f"{cause.id}: {cause.title}"]
    if cause.role is not Role.ROOT:
        parts.append(_wrap(f"Never the reason of a failure: role {cause.role.value}."))
    if cause.means:
        parts.append(_wrap(cause.means))
    if cause.remedies:
        parts.append("What helps:\n" + "\n".join(_remedy(r) for r in cause.remedies))
    if cause.origins:
        parts.append("May be brought about by:\n" + "\n".join(_origin(o) for o in cause.origins))
    if cause.discriminator:
        parts.append(_wrap(f"The one test that would discriminate: {cause.discriminator}"))
    if cause.escalate:
        parts.append(_wrap(f"Escalate if {cause.escalate}"))
    if cause.phases:
        parts.append(_labelled("Phases", cause.phases))
    if cause.culprit_flags or cause.culprit_env:
        named = [f"--{flag}" for flag in cause.culprit_flags]
        parts.append(_labelled("Suspects", [*named, *cause.culprit_env]))
    probes = [f"triage probe {name}" for name in cause.probe]
    for label, others in (
        ("Confused with", cause.confused_with),
        ("Told apart by", probes),
        ("Told before a launch by triage doctor, check", told_by(cause.id)),
    ):
        parts += [_labelled(label, others)] if others else []
    if cause.decoys:
        parts.append("Misleading:\n" + "\n".join(_item(d) for d in cause.decoys))
    if cause.examples:
        parts.append("Looks like:\n" + "\n".join(_item(e) for e in cause.examples[:3]))
    if cause.sources:
        parts.append("Sources:\n" + "\n".join(f"  {s}" for s in cause.sources))
    return "\n\n".join(parts)


def cause_document(cause: Cause) -> dict[str, Any]:
    """`triage.cause/1`."""
    return {
        "schema": "triage.cause/1",
        "id": cause.id,
        "title": cause.title,
        "role": cause.role.value,
        "phases": list(cause.phases),
        "means": cause.means,
        "confused_with": list(cause.confused_with),
        "probe": list(cause.probe),
        "doctor": list(told_by(cause.id)),
        "decoys": list(cause.decoys),
        "culprits": {"flags": list(cause.culprit_flags), "env": list(cause.culprit_env)},
        "remedies": [
            {
                "say": r.say,
                "changes": remedy_words(r),
                "disposition": r.disposition.value,
                "cost": r.cost,
                "evidence": r.evidence,
            }
            for r in cause.remedies
        ],
        "origins": [
            {"say": o.say, "basis": o.basis, "look": o.look, "sources": list(o.sources)}
            for o in cause.origins
        ],
        "discriminator": cause.discriminator,
        "escalate": cause.escalate,
        "examples": list(cause.examples),
        "sources": list(cause.sources),
    }


def _remedy(remedy: Remedy) -> str:
    change = remedy_words(remedy)
    facts = [remedy.disposition.value]
    if remedy.cost:
        facts.append(f"cost: {remedy.cost}")
    if remedy.evidence:
        facts.append(remedy.evidence)
    lines = [_item(remedy.say)]
    if change:
        lines.append(_wrap(change, "    "))
    lines.append(_wrap(f"({'; '.join(facts)})", "    "))
    return "\n".join(lines)


def _origin(origin: Origin) -> str:
    lines = [_item(f"{origin.say} ({origin.basis})")]
    if origin.look:
        lines.append(_wrap(f"to tell: {origin.look}", "    "))
    return "\n".join(lines)


def _labelled(label: str, values: Sequence[str]) -> str:
    return _wrap(f"{label}: {', '.join(values)}", "", "  ")


def _item(text: str) -> str:
    return _wrap(text, "- ", "  ")


def _wrap(text: str, first: str = "", rest: str | None = None) -> str:
    return textwrap.fill(
        in_words(" ".join(text.split())),
        WIDTH,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )

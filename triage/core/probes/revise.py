"""A diagnosis in the light of probes: confidence, other causes, remedies that cannot help.

In:  a Diagnosis, results, the causes. Out: which probes would discriminate; Revision.
Not: another root line: a log says what it says, and a probe cannot change that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from triage.core.causes import Cause
from triage.core.config import SetFlag, UnsetFlag
from triage.core.diagnosis import Advice, Alternative, Diagnosis
from triage.core.probes.catalogue import PROBES, Probe
from triage.core.probes.results import Finding, ProbeResult
from triage.core.records import dataclass

LEVELS = ("low", "medium", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """The diagnosis after the probes, and what changed of it, a sentence each."""

    diagnosis: Diagnosis
    changed: tuple[str, ...]


def probes_for(diagnosis: Diagnosis, causes: Sequence[Cause]) -> tuple[Probe, ...]:
    """The probes that would tell the named cause from its look-alikes, cheapest first."""
    known = {cause.id: cause for cause in causes}
    cause = known.get(diagnosis.cause or "")
    ids = [diagnosis.cause or "", *(one.cause for one in diagnosis.also)]
    ids += cause.confused_with if cause else ()
    wanted = {probe for one in ids if one in known for probe in known[one].probe}
    return tuple(sorted((p for p in PROBES if p.name in wanted), key=lambda p: p.seconds))


def revise(diagnosis: Diagnosis, results: Sequence[ProbeResult]) -> Revision:
    """What the results change: one step of confidence for each cause that they speak of.

    A cause that a probe supports and the log does not name joins the others at low confidence
    only if it is already among them: a probe alone names no cause of this failure.
    """
    findings = [finding for result in results for finding in result.findings]
    changed = []
    confidence = diagnosis.confidence
    for finding in _about(findings, diagnosis.cause):
        after = _moved(confidence, finding.effect)
        if after != confidence:
            changed.append(f"{finding.cause}: confidence {confidence} -> {after}, as {finding.why}")
        confidence = after
    also = []
    for one in diagnosis.also:
        level = one.confidence
        for finding in _about(findings, one.cause):
            level = _moved(level, finding.effect)
        if level != one.confidence:
            why = _about(findings, one.cause)[-1].why
            changed.append(f"{one.cause}: confidence {one.confidence} -> {level}, as {why}")
        also.append(Alternative(cause=one.cause, confidence=level))
    ruled = {flag: why for result in results for flag, why in result.rules_out}
    remedies = tuple(r for r in diagnosis.remedies if not _cannot_help(r, ruled))
    changed += [
        f"cannot help: {remedy.say} ({why})"
        for remedy in diagnosis.remedies
        if (why := _cannot_help(remedy, ruled))
    ]
    revised = replace(
        diagnosis,
        confidence=confidence,
        also=tuple(sorted(also, key=lambda one: -LEVELS.index(one.confidence))),
        remedies=remedies,
    )
    return Revision(diagnosis=revised, changed=tuple(changed))


def _about(findings: Sequence[Finding], cause: str | None) -> list[Finding]:
    """The findings about this cause; of the same words one."""
    return list(dict.fromkeys(f for f in findings if f.cause == cause))


def _moved(level: str, effect: str) -> str:
    step = 1 if effect == "supports" else -1
    return LEVELS[min(max(LEVELS.index(level) + step, 0), len(LEVELS) - 1)]


def _cannot_help(remedy: Advice, ruled: Mapping[str, str]) -> str:
    """Why all that the remedy changes was ruled out; "" if it may help."""
    if not remedy.changes:
        return ""
    names = [c.name for c in remedy.changes if isinstance(c, SetFlag | UnsetFlag)]
    if len(names) != len(remedy.changes) or not set(names) <= ruled.keys():
        return ""
    return ruled[names[0]]

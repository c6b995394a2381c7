"""Probes as plain text for a terminal of 80 columns.

In:  the catalogue, results, a Revision. Out: lines without a newline at the end.
Not: printing (triage.cli).
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from triage.core.probes.catalogue import PROBES
from triage.core.probes.results import Experiment, ProbeResult
from triage.core.probes.revise import Revision
from triage.render.markdown import visible

WIDTH = 80
_SHOWN = 160  # letters of an error


def catalogue_text() -> str:
    """The probes, cheapest first."""
    lines = []
    for one in PROBES:
        needs = [f"about {one.seconds} s"]
        needs += ["torch"] if one.torch else []
        needs += [f"{one.gpus} GPUs" if one.gpus > 1 else "a GPU"] if one.gpus else []
        lines.append(f"{one.name:16} {', '.join(needs)}")
        lines.append(_wrapped(f"  {one.question}", "  "))
    return "\n".join(lines)


def result_text(result: ProbeResult) -> str:
    """What it means, then its experiments."""
    where = f" on {result.device}" if result.device else ""
    lines = [f"probe {result.probe}{where}: {result.outcome} ({result.seconds:.1f} s)"]
    lines += [_wrapped(f"  {said}", "    ") for said in result.meaning]
    lines += [_experiment(one) for one in result.experiments]
    lines += [_wrapped(f"  {one.effect} {one.cause}: {one.why}", "    ") for one in result.findings]
    if result.versions:
        known = ", ".join(f"{k} {v}" for k, v in result.versions.items() if v)
        lines.append(_wrapped(f"  versions: {known}", "    "))
    if result.outcome in ("crashed", "hung", "killed") and result.output:
        last = result.output.splitlines()[-1]
        lines.append(_wrapped(f"  its last line: {last[:_SHOWN]}", "    "))
    return "\n".join(lines)


def revision_text(revision: Revision, results: Sequence[ProbeResult]) -> str:
    """The results, and what they change of the diagnosis."""
    diagnosis = revision.diagnosis
    lines = [result_text(one) for one in results]
    named = diagnosis.cause or "no cause"
    lines.append(f"{named}: confidence {diagnosis.confidence} after the probes")
    lines += [_wrapped(f"  {said}", "    ") for said in revision.changed]
    if not revision.changed:
        lines.append("  nothing changes")
    return "\n".join(lines)


def _experiment(one: Experiment) -> str:
    facts = ", ".join(f"{k} {v}" for k, v in one.facts.items())
    said = one.detail[:_SHOWN] if one.outcome != "passed" else facts
    expected = " (as it must)" if one.given.get("must_fail") and one.outcome == "failed" else ""
    return _wrapped(f"  {one.outcome:8} {one.name}{expected}{': ' if said else ''}{said}", " " * 11)


def _wrapped(text: str, later: str) -> str:
    line = visible(" ".join(text.splitlines())).rstrip()
    return textwrap.fill(
        line, WIDTH, subsequent_indent=later, break_on_hyphens=False, drop_whitespace=True
    )

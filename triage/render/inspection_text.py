"""An inspection for a terminal of 80 columns, and as the document `triage.inspection/1`.

In:  an Inspection. Out: text without colour; a dict of plain JSON values.
Not: inspecting (triage.core.inspection).
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from triage.core.inspection.facts import CHECKS, Finding, Inspection
from triage.core.printable import visible
from triage.render.documents import Json

WIDTH = 80
_LABEL = 10
_PLACES = 4


def inspection_text(found: Inspection) -> str:
    """What was looked at, what cannot work and where that stands, what is open."""
    lines = [*_heads(found)]
    for finding in found.findings:
        lines += ["", *_finding(finding)]
    if not found.findings:
        lines += ["", "nothing found that cannot work"]
    looked = [check for check in CHECKS if check not in dict(found.open)]
    lines.append("")
    if looked:
        lines += _labelled("checked", ", ".join(looked))
    for why in dict.fromkeys(why for _, why in found.open):
        checks = ", ".join(check for check, said in found.open if said == why)
        lines += _labelled("open", f"{checks}: {why}")
    return "\n".join(lines)


def _heads(found: Inspection) -> Iterator[str]:
    installed, model = found.installed, found.model
    version = f"sglang {installed.version or 'of unknown version'}"
    yield from _labelled(
        "engine", f"{version}  {installed.root}" if installed.root else "not found"
    )
    what = f"{model.path}  {model.architecture}".strip() if not model.why else "not read"
    yield from _labelled("model", what)


def _finding(finding: Finding) -> Iterator[str]:
    mark = "" if finding.sure else "maybe: "
    yield from wrap(
        visible(f"{finding.check}: {mark}{finding.say}"), WIDTH, subsequent_indent="  ",
        break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip
    if finding.flags:
        flags = " ".join(x if x.startswith("env:") else f"--{x}" for x in finding.flags)
        yield from _labelled("  flags", flags)
    more = len(finding.where) - _PLACES
    places = [*finding.where[:_PLACES], *([f"and {more} more"] if more > 0 else [])]
    for label, place in zip(["  where", *[""] * len(places)], places, strict=False):
        yield from _labelled(label, place)


def _labelled(label: str, text: str) -> list[str]:
    return wrap(
        visible(text), WIDTH, initial_indent=f"{label:{_LABEL}}", subsequent_indent=" " * _LABEL,
        break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip


def inspection_document(found: Inspection) -> dict[str, Json]:
    """`triage.inspection/1`: the engine, the model, the findings, what is open."""
    installed, model = found.installed, found.model
    return {
        "schema": "triage.inspection/1",
        "engine": {
            "name": "sglang",
            "version": installed.version or None,
            "python": installed.python or None,
            "root": installed.root or None,
        },
        "model": {
            "path": model.path or None,
            "file": model.file or None,
            "architecture": model.architecture or None,
        },
        "findings": [
            {
                "check": finding.check,
                "say": finding.say,
                "sure": finding.sure,
                "where": list[Json](finding.where),
                "flags": list[Json](finding.flags),
            }
            for finding in found.findings
        ],
        "checked": [check for check in CHECKS if check not in dict(found.open)],
        "open": [{"check": check, "why": why} for check, why in found.open],
    }

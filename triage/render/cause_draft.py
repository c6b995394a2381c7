"""A drafted cause and its case as YAML, with what a person must still write marked TODO.

In:  a diagnosis of a failure without a cause, its redacted texts, a pattern.
Out: the text of a cause file, of a case.yaml.
Not: choosing the pattern (core.log.pattern) or writing files (triage.session.draft).
"""

from __future__ import annotations

from collections.abc import Sequence

from triage.core.diagnosis import Diagnosis
from triage.core.printable import visible
from triage.render.reported import shown


def cause_yaml(
    d: Diagnosis,
    *,
    id_: str,
    pattern: str,
    example: str,
    frames: Sequence[str],
    phases: Sequence[str],
    flags: Sequence[str],
) -> str:
    """The cause file. What it says is what the log shows; what it means is left to do."""
    lines = [
        f"# Drafted by `triage causes new` from one log. {d.fingerprint or 'No fingerprint'} of:",
        f"#   {shown(d.fingerprint_of)}",
        "# `triage causes check` names every TODO that is left. Is the pattern too wide?",
        f"id: {id_}",
        "title: 'TODO: what is wrong, in one sentence'",
        "role: root",
        "severity: suspect",
    ]
    if phases:
        lines.append(f"phases: [{', '.join(phases)}]")
    lines += ["patterns:", f"  - {quoted(pattern)}"]
    if frames:
        lines.append(f"frames: [{', '.join(map(quoted, frames))}]")
    lines += [
        "examples:",
        f"  - {quoted(example)}",
        "means: 'TODO: two sentences on why it happens'",
    ]
    if flags:
        lines.append(f"culprits: {{flags: [{', '.join(flags)}]}}")
    lines += [
        "remedies:",
        "  - say: 'TODO: what helps'",
        "    disposition: manual",
        "    cost: 'TODO: what it gives up, or none'",
        "    evidence: inferred",
        "sources: ['TODO: where it was seen, as an address']",
    ]
    return "\n".join(lines) + "\n"


def case_yaml(d: Diagnosis, *, note: str) -> str:
    """The case.yaml of the log; `d` is what is found in it with the draft."""
    version = d.engine_version or "unknown"
    lines = [
        "schema: triage.case/1",
        "source:",
        "  kind: real",
        f"  engine: {quoted(d.engine)}",
        f"  version: {quoted(version)}",
        f"  note: {quoted(note)}",
        "expect:",
        f"  outcome: {d.outcome}",
        f"  cause: {d.cause or 'null'}",
        f"  phase: {d.phase}",
        f"  ranks: [{', '.join(map(quoted, d.ranks))}]",
    ]
    if d.root:
        piece = " ".join(d.root.text.split("\n", 1)[0].split(" ")[:6])
        lines.append(f"  root: {{line: {d.root.line}, text: {quoted(piece)}}}")
    return "\n".join([*lines, "known_miss: false"]) + "\n"


def quoted(text: str) -> str:
    """A scalar of YAML on one line, whatever the text holds."""
    line = visible(text).replace("\n", " ").replace("\t", " ")
    return "'" + line.replace("'", "''") + "'"

"""Groups of unknown failures for reading, and as a JSON document.

In:  groups, and how many logs they are of. Out: a table; `triage.clusters/1`.
Not: grouping (core.log.cluster).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from triage.core.log.cluster import Group
from triage.render.reported import shown

_TEXT = 100  # characters of a failure in the table


def clusters_text(groups: Sequence[Group], logs: int) -> str:
    """The groups, the largest first, and what to type for the largest that has a root line."""
    unknown = sum(len(group.members) for group in groups)
    lines = [f"{_count(logs, 'log')}: {unknown} without a cause, in {_count(len(groups), 'group')}"]
    if not groups:
        return lines[0]
    lines += ["", "logs  fingerprint      failure"]
    for group in groups:
        kinds = len({member.fingerprint for member in group.members})
        lines.append(
            f"{len(group.members):>4}  {group.fingerprint or 'none':<15}  {_cut(group.text)}"
        )
        near = "" if kinds == 1 else f"; {kinds} fingerprints"
        lines.append(f"      in {', '.join(group.phases[:3])}{near}")
        place = f"{group.example}:{group.line}" if group.line else group.example
        lines.append(f"      as in {place}")
    if first := draftable(groups):
        lines += ["", f"next: triage causes new --from {shlex.quote(first.example)}"]
    return "\n".join(lines)


def draftable(groups: Sequence[Group]) -> Group | None:
    """The largest group whose example has a line to make a pattern from."""
    return next((g for g in groups if g.outcome == "failed" and g.line and g.fingerprint), None)


def clusters_document(groups: Sequence[Group], logs: int, level: str) -> dict[str, Any]:
    """`triage.clusters/1`."""
    first = draftable(groups)
    return {
        "schema": "triage.clusters/1",
        "logs": logs,
        "unknown": sum(len(group.members) for group in groups),
        "level": level,
        "groups": [_group(group) for group in groups],
        "next": ["triage", "causes", "new", "--from", first.example] if first else [],
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        "fingerprint": group.fingerprint or None,
        "frame_fingerprint": group.frame or None,
        "outcome": group.outcome,
        "text": group.text,
        "example": {"log": group.example, "line": group.line or None},
        "phases": list(group.phases),
        "members": [
            {
                "log": member.source,
                "line": member.line or None,
                "phase": member.phase,
                "fingerprint": member.fingerprint or None,
                "exact_fingerprint": member.exact,
                "similarity": member.similarity,
            }
            for member in group.members
        ],
    }


def _cut(text: str) -> str:
    line = shown(text)
    return line if len(line) <= _TEXT else line[: _TEXT - 4] + " ..."


def _count(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")

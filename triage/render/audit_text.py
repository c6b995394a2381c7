"""An audit of the knowledge base for reading, and as a JSON document.

In:  an Audit. Out: text; `triage.audit/1`.
Not: auditing (core.log.audit).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from triage.core.log.audit import MB, Audit

_KINDS = {
    "confusion": "taken for another",
    "no-case": "causes that win no case",
    "shadowed": "patterns that another cause shadows",
    "no-confuser-case": "look-alikes without a case",
    "common-literal": "literals that are frequent in healthy logs",
}


def audit_text(audit: Audit) -> str:
    """What was looked at, the confusion matrix off its diagonal, then every entry."""
    wrong = sum(count for _, _, count in audit.cells)
    megabytes = f"{audit.benign_bytes / MB:.1f} MB"
    lines = [
        f"{audit.cases} cases, {audit.causes} causes, {megabytes} of healthy logs",
        f"confusion matrix: {audit.cases - wrong} on the diagonal, {wrong} off it",
    ]
    if audit.cells:
        width = max(len(expected) for expected, _, _ in audit.cells)
        lines += [f"  {n:>4}  {e:<{width}} -> {found}" for e, found, n in audit.cells]
    for kind, words in _KINDS.items():
        lines += _section(audit, kind, words)
    if not audit.entries:
        lines.append("nothing to report")
    return "\n".join(lines)


def _section(audit: Audit, kind: str, words: str) -> Iterator[str]:
    entries = [entry for entry in audit.entries if entry.kind == kind]
    if not entries:
        return
    yield ""
    yield f"{words}: {len(entries)}"
    for entry in entries:
        yield f"  {entry.say}"
        yield f"    {entry.suggest}"


def audit_document(audit: Audit, folder: str) -> dict[str, Any]:
    """`triage.audit/1`."""
    return {
        "schema": "triage.audit/1",
        "folder": folder,
        "cases": audit.cases,
        "causes": audit.causes,
        "benign_bytes": audit.benign_bytes,
        "confusion": [
            {"expected": expected, "found": found, "cases": count}
            for expected, found, count in audit.cells
        ],
        "found": [
            {"kind": entry.kind, "about": entry.about, "say": entry.say, "suggest": entry.suggest}
            for entry in audit.entries
        ],
    }

"""In which phases the recorded cases show each cause: for a reader who looks by phase.

In:  seen.json, or the recorded cases that it is made from. Out: cause id -> phases.
Not: where a cause may be the root (`phases` of its file, which limits the matching).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from triage.core.phases import order

FILE = Path(__file__).with_name("seen.json")


def seen_phases() -> Mapping[str, tuple[str, ...]]:
    """Cause id -> phases in the order of a startup; a cause without a case has no entry."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: tuple(phases) for name, phases in stored.items()}


def phases_of_cases(folder: Path) -> dict[str, list[str]]:
    """The same from a folder of cases; UsageError says what is wrong with one."""
    from triage.knowledge.cases import load_cases  # noqa: PLC0415  pydantic is slow to import

    found: dict[str, set[str]] = {}
    for case in load_cases(folder):
        phase, cause = case.expect.get("phase"), case.expect.get("cause")
        if isinstance(cause, str) and isinstance(phase, str) and phase != "unknown":
            found.setdefault(cause, set()).add(phase)
    return {name: sorted(phases, key=order) for name, phases in sorted(found.items())}


def write_seen(cases: Path) -> None:
    """Write seen.json from the cases, a cause a line."""
    lines = (
        f"{json.dumps(name)}: {json.dumps(phases)}"
        for name, phases in phases_of_cases(cases).items()
    )
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

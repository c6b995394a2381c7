"""A comparison of two launches as the JSON document `triage.diff/1`.

In:  a Diff. Out: a dict of plain JSON values whose first key is `schema`.
Not: text for people (diff_text.py).
"""

from __future__ import annotations

from math import isfinite

from triage.core.config import Value
from triage.core.diff.difference import PARTS, Diff
from triage.core.diff.side import Side
from triage.core.hide import hide_config
from triage.render.documents import Json, config_document, value_document


def diff_document(diff: Diff) -> dict[str, Json]:
    """`triage.diff/1`: both sides, then what differs, part by part."""
    changes: dict[str, list[Json]] = {
        "user": [{"key": c.key, "good": _typed(c.good), "bad": _typed(c.bad)} for c in diff.user],
        "resolved": [
            {
                "field": c.field,
                "flag": c.flag or None,
                "good": plain(c.good),
                "bad": plain(c.bad),
                "kind": c.kind,
                "by": list[Json](c.by),
                "where": c.where or None,
                "follows": c.also,
                "why": c.why,
                "sure": c.sure,
            }
            for c in diff.resolved
        ],
        "env": [
            {
                "name": c.name,
                "good": c.good,
                "bad": c.bad,
                "told": c.told,
                "by": list[Json](c.by),
                "where": c.where or None,
            }
            for c in diff.env
        ],
        "versions": [{"name": c.name, "good": c.good, "bad": c.bad} for c in diff.versions],
        "timeline": [
            {"phase": c.phase, "kind": c.kind, "good": c.good, "bad": c.bad} for c in diff.timeline
        ],
        "memory": [
            {"name": c.name, "unit": c.unit, "good": plain(c.good), "bad": plain(c.bad)}
            for c in diff.memory
        ],
        "decisions": [{"text": c.text, "side": c.side, "line": c.line} for c in diff.decisions],
    }
    return {
        "schema": "triage.diff/1",
        "good": _side(diff.good),
        "bad": _side(diff.bad),
        "equal": diff.equal,
        **{
            part: {
                "compared": not any(about == part for about, _ in diff.notes),
                "notes": [say for about, say in diff.notes if about == part],
                "changes": changes[part],
            }
            for part in PARTS
        },
        "suppressed": [
            {
                "part": s.part,
                "name": s.name,
                "good": plain(s.good),
                "bad": plain(s.bad),
                "reason": s.reason,
            }
            for s in diff.suppressed
        ],
    }


def _side(side: Side) -> Json:
    return {
        "source": side.source,
        "kind": side.kind,
        "trial": side.trial,
        "engine": {"name": side.engine, "version": side.engine_version},
        "outcome": side.outcome or None,
        "phase": side.phase,
        "cause": side.cause,
        "fingerprint": side.fingerprint,
        "simulated": side.simulated,
        "typed": None if side.typed is None else config_document(hide_config(side.typed)),
    }


def _typed(value: Value | None) -> Json:
    return None if value is None else value_document(value)


def plain(value: object) -> Json:
    """A value of a resolved field as JSON: a scalar, or a list of scalars.

    Numbers that JSON lacks and what is nested deeper become text.
    """
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) < 2**53 else str(value)
        case float():
            return value if isfinite(value) else str(value)
        case list() | tuple():
            flat = (one if not isinstance(one, list | tuple | dict) else str(one) for one in value)
            return [plain(one) for one in flat]
        case _:
            return str(value)

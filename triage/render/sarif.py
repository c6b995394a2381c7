"""Results as SARIF 2.1.0, for code scanning.

In:  results, and the causes that they may name. Out: a JSON value with one run.
Not: writing it to a file (triage.session.reports).

A rule is a cause; a result that the check does not have to report is left out. Source: the
SARIF 2.1.0 standard; GitHub takes at most 25,000 results of a run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from triage.core.causes import Cause
from triage.core.results import Result, Status
from triage.render.reported import UNKNOWN, Said, said, shown

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
MOST = 25_000
_OTHER_RULES = {
    UNKNOWN: "A failure that no cause of the knowledge base explains",
    "hung": "The launch stands still, or its log was cut",
    "interrupted": "Somebody stopped the launch",
    "healthy": "The server was ready, and the case expects something else",
    "empty": "No line of an engine, and the case expects something else",
    "unreadable-case": "A case, or its log, that cannot be read",
}


def sarif(results: Sequence[Result], causes: Mapping[str, Cause], version: str) -> dict[str, Any]:
    """The log file: its rules are those that its results name, in order of their ids."""
    told = [(result, one) for result in results if (one := said(result)).kind in _LEVELS]
    kept = told[:MOST]
    rules = sorted({one.rule for _, one in kept})
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "triage",
                "semanticVersion": version,
                "rules": [_rule(rule, causes.get(rule)) for rule in rules],
            }
        },
        "originalUriBaseIds": {
            "SRCROOT": {"description": {"text": "The folder in which triage was started."}},
            "FILESYSTEM": {"uri": "file:///"},
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(result, one, rules) for result, one in kept],
    }
    if len(told) > MOST:
        run["invocations"] = [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {
                        "level": "warning",
                        "message": {"text": f"{len(told) - MOST} results are left out."},
                    }
                ],
            }
        ]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


_LEVELS = {"failed": "error", "error": "warning"}


def _rule(rule: str, cause: Cause | None) -> dict[str, Any]:
    title = cause.title if cause else _OTHER_RULES.get(rule, rule)
    made: dict[str, Any] = {
        "id": rule,
        "shortDescription": {"text": title},
        "defaultConfiguration": {"level": "error"},
    }
    if cause and cause.means:
        made["fullDescription"] = {"text": cause.means}
    if cause and cause.remedies:
        lines = "\n".join(f"- {remedy.say}" for remedy in cause.remedies)
        made["help"] = {"text": lines, "markdown": lines}
    if cause and cause.sources and cause.sources[0].startswith("https://"):
        made["helpUri"] = cause.sources[0]
    return made


def _result(result: Result, one: Said, rules: Sequence[str]) -> dict[str, Any]:
    d = result.diagnosis
    made: dict[str, Any] = {
        "ruleId": one.rule,
        "ruleIndex": rules.index(one.rule),
        "level": _LEVELS[one.kind],
        "message": {"text": one.message or one.title or one.rule},
        "locations": [_location(result.place, result.line, _snippet(result))],
        "partialFingerprints": {"triage/v1": _fingerprint(result, one)},
    }
    if d and d.decoys and result.status is Status.UNCOMPARED:
        made["relatedLocations"] = [
            {**_location(result.place, decoy.line), "message": {"text": decoy.why}}
            for decoy in d.decoys[:9]
        ]
    if d:
        made["properties"] = {
            "outcome": d.outcome,
            "phase": d.phase,
            "confidence": d.confidence,
            "ranks": list(d.ranks),
        }
    return made


def _fingerprint(result: Result, one: Said) -> str:
    """What makes two results the same failure, wherever it stands in the log."""
    if result.diagnosis and result.diagnosis.fingerprint:
        return result.diagnosis.fingerprint
    text = f"{one.rule}|{result.name}".encode("utf-8", "replace")
    return "v1:" + hashlib.blake2b(text, digest_size=6).hexdigest()


def _snippet(result: Result) -> str:
    root = result.diagnosis.root if result.diagnosis else None
    return shown(root.text) if root and root.line == result.line else ""


def _location(place: str, line: int, snippet: str = "") -> dict[str, Any]:
    base = "FILESYSTEM" if place.startswith("/") else "SRCROOT"
    uri = quote(place.lstrip("/").encode("utf-8", "replace"), safe="/")
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri, "uriBaseId": base}}
    if line:
        physical["region"] = {"startLine": line}
        if snippet:
            physical["region"]["snippet"] = {"text": snippet}
    return {"physicalLocation": physical}

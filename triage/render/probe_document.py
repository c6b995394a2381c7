"""A probe's result as the document `triage.probe/1`.

In:  ProbeResult, Revision. Out: JSON objects.
Not: its schema (tools/schemas/probe.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from triage.core.probes.results import Finding, ProbeResult
from triage.core.probes.revise import Revision


def probe_document(result: ProbeResult) -> dict[str, Any]:
    """One result."""
    return {
        "schema": "triage.probe/1",
        "probe": result.probe,
        "outcome": result.outcome,
        "device": result.device,
        "reason": result.reason,
        "seconds": result.seconds,
        "versions": dict(result.versions),
        "meaning": list(result.meaning),
        "findings": [asdict(one) for one in result.findings],
        "rules_out": [{"flag": flag, "why": why} for flag, why in result.rules_out],
        "experiments": [
            {
                "name": one.name,
                "outcome": one.outcome,
                "status": one.status,
                "detail": one.detail,
                "seconds": one.seconds,
                "given": dict(one.given),
                "facts": dict(one.facts),
            }
            for one in result.experiments
        ],
        "output": result.output,
    }


def probe_result_of(document: Mapping[str, Any]) -> ProbeResult:
    """What a stored result says of causes and remedies; its experiments are left out.

    Raises:
        KeyError, TypeError, ValueError: it is not such a document.
    """
    return ProbeResult(
        probe=str(document["probe"]),
        outcome=str(document["outcome"]),
        device=str(document["device"]),
        reason=str(document["reason"]),
        seconds=float(document["seconds"]),
        meaning=tuple(map(str, document["meaning"])),
        findings=tuple(Finding(**one) for one in document["findings"]),
        rules_out=tuple((str(o["flag"]), str(o["why"])) for o in document["rules_out"]),
    )


def probes_document(revision: Revision, results: Sequence[ProbeResult]) -> dict[str, Any]:
    """What `--for` found: results, and the diagnosis after them."""
    diagnosis = revision.diagnosis
    return {
        "schema": "triage.probes/1",
        "source": diagnosis.source,
        "cause": diagnosis.cause,
        "confidence": diagnosis.confidence,
        "also": [asdict(one) for one in diagnosis.also],
        "remedies": [one.say for one in diagnosis.remedies],
        "changed": list(revision.changed),
        "results": [
            {k: v for k, v in probe_document(result).items() if k != "schema"} for result in results
        ],
    }

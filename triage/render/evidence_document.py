"""The evidence of a launch as the JSON document `triage.evidence/1`, and back.

In:  Evidence, or a stored document. Out: a document of plain JSON values, or Evidence.
Not: writing it (triage.session.evidence).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from triage.core.evidence import Difference, Evidence, GpuUse, Piece, Tenant


def evidence_document(evidence: Evidence) -> dict[str, Any]:
    """`triage.evidence/1`."""
    return {
        "schema": "triage.evidence/1",
        "simulated": evidence.simulated,
        "pieces": [asdict(piece) for piece in evidence.pieces],
        "gpus": [
            asdict(use) | {"slowed": [{"reason": r, "seconds": s} for r, s in use.slowed]}
            for use in evidence.gpus
        ],
        "share": evidence.share,
        "kernel": list(evidence.kernel),
        "differences": [asdict(one) for one in evidence.differences],
    }


def evidence_of(document: dict[str, Any]) -> Evidence:
    """The stored evidence of a launch.

    Raises:
        KeyError, TypeError, ValueError: it is damaged.
    """
    return Evidence(
        pieces=tuple(Piece(**piece) for piece in document["pieces"]),
        gpus=tuple(_use(use) for use in document["gpus"]),
        share=float(document["share"]),
        kernel=tuple(map(str, document["kernel"])),
        differences=tuple(Difference(**one) for one in document["differences"]),
        simulated=bool(document["simulated"]),
    )


def _use(stored: dict[str, Any]) -> GpuUse:
    return GpuUse(
        **stored
        | {
            "slowed": tuple((one["reason"], one["seconds"]) for one in stored["slowed"]),
            "xids": tuple(stored["xids"]),
            "tenants": tuple(Tenant(**one) for one in stored["tenants"]),
            "foreign": tuple(Tenant(**one) for one in stored["foreign"]),
        }
    )

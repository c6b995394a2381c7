"""Every folder of fixtures/cases is one test: its log gives the diagnosis that its case.yaml expects."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.core.config import SetFlag
from triage.core.diagnosis import Diagnosis
from triage.core.handover.expected import met
from triage.core.handover.proposals import Proposals
from triage.core.log.diagnose import diagnose
from triage.knowledge import load_cases, load_causes_from, load_flag_table
from triage.knowledge.cases import Case, differences
from triage.knowledge.written import CAUSES
from triage.render.documents import diagnosis_document
from triage.session.proposals import proposals_of

FOLDER = Path(__file__).parents[2] / "fixtures/cases"
KNOWLEDGE = load_causes_from(CAUSES)
TABLE = load_flag_table()


CASES = load_cases(FOLDER)
# What the engine's list of "Possible solutions" names, for whatever failure of a capture.
MEMORY_IS_SHORT = {
    "oom-nvml-unreadable", "graph-capture-oom", "draft-graph-oom", "symm-mem-oom", "cublas-create-failed", "hicache-gpu-oom"
}  # fmt: skip
MEMORY = {"mem-fraction-static", "cuda-graph-max-bs", "cuda-graph-max-bs-decode"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_log_gives_the_expected_diagnosis(case: Case, request: pytest.FixtureRequest) -> None:
    if case.known_miss:
        request.applymarker(pytest.mark.xfail(strict=True, reason="known_miss in case.yaml"))
    with case.log.open("rb") as log:
        diagnosis = diagnose(log, KNOWLEDGE, source=str(case.log), table=TABLE)
    assert differences(case.expect, diagnosis_document(diagnosis)) == ()
    if diagnosis.outcome in ("failed", "hung"):
        the_best_proposal_is_no_decoy(case, diagnosis)


def the_best_proposal_is_no_decoy(case: Case, diagnosis: Diagnosis) -> None:
    """It is one that reports confirm, where they do, and never the engine's standing advice."""
    found = proposals_of(diagnosis, known=KNOWLEDGE)
    assert not case.ways or met(found.options[0], case.ways), found.options[:1]
    listed = b"Possible solutions:" in case.log.read_bytes()
    if listed and diagnosis.cause not in MEMORY_IS_SHORT:
        assert not MEMORY & lowered(found), found.options[0]


def lowered(found: Proposals) -> set[str]:
    """Flags to which the best proposal gives a value, unless reports confirm it."""
    best = found.options[:1]
    return {
        change.name
        for option in best
        for change in option.changes
        if isinstance(change, SetFlag) and option.basis.value not in ("launched", "reported")
    }


def test_most_causes_with_a_confirmed_remedy_are_compared() -> None:
    known = {
        cause.id for cause in KNOWLEDGE if any("confirmed" in r.evidence for r in cause.remedies)
    }
    compared = {case.subject for case in CASES if case.ways}
    assert len(compared) >= 100
    assert len(known & compared) >= 0.9 * len(known)

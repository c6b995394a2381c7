"""Every folder of fixtures/cases is one test: its log gives the diagnosis that its case.yaml expects."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.core.log.diagnose import diagnose
from triage.knowledge import load_cases, load_causes_from, load_flag_table
from triage.knowledge.cases import Case, differences
from triage.knowledge.stored import CAUSES
from triage.render.documents import diagnosis_document

FOLDER = Path(__file__).parents[2] / "fixtures/cases"
KNOWLEDGE = load_causes_from(CAUSES)
TABLE = load_flag_table()


@pytest.mark.parametrize("case", load_cases(FOLDER), ids=lambda case: case.name)
def test_the_log_gives_the_expected_diagnosis(case: Case, request: pytest.FixtureRequest) -> None:
    if case.known_miss:
        request.applymarker(pytest.mark.xfail(strict=True, reason="known_miss in case.yaml"))
    with case.log.open("rb") as log:
        diagnosis = diagnose(log, KNOWLEDGE, source=case.log.name, table=TABLE)
    assert differences(case.expect, diagnosis_document(diagnosis)) == ()

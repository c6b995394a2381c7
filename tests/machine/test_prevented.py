"""Public reports that the doctor would have told: each fault is planted, and its check finds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_gpus import FakeGpus
from planted import COMMAND, in_process, node

from triage.core.doctor.catalogue import CHECKS
from triage.session.knowledge import causes

ROOT = Path(__file__).parents[2]
REPORTS: list[dict[str, Any]] = yaml.safe_load((ROOT / "fixtures/doctor/reports.yaml").read_text())
BY_ID = {check.id: check for check in CHECKS}


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report["report"])
def test_a_report_would_have_been_told_before_the_launch(
    report: dict[str, Any],
    tmp_path: Path,
    fake_gpus: FakeGpus,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant = report["plant"]
    command = report.get("command")
    with node(tmp_path, fake_gpus, monkeypatch, plant) as made:
        if "process" in plant:
            document = in_process(made, plant["process"], command or COMMAND)
            found = [
                (f["id"], f["severity"], f["evidence"], f["fix"]) for f in document["findings"]
            ]
        else:
            seen = made.examine(command, deep="hub" in plant)
            found = [(f.id, f.severity, f.evidence, f.fix) for f in seen.findings]
    hits = [hit for hit in found if hit[0] == report["check"]]
    assert hits, found
    assert report["severity"] in {severity for _, severity, _, _ in hits}
    for _, _, evidence, fix in hits:
        assert evidence
        assert fix


def test_more_than_sixty_reports_state_the_fact_that_a_check_reads() -> None:
    names = [report["report"] for report in REPORTS]
    assert len(names) == len(set(names))
    assert sum(report["certainty"] == "shown" for report in REPORTS) >= 60
    for report in REPORTS:
        assert report["certainty"] in ("shown", "likely")
        assert report["check"] in BY_ID, report["report"]
        assert report["url"].startswith("https://github.com/")


def test_what_a_check_prevents_are_causes_of_the_knowledge_base() -> None:
    known = {cause.id for cause in causes()}
    named = {cause for check in CHECKS for cause in check.prevents}
    assert named <= known
    assert len(named) > 60

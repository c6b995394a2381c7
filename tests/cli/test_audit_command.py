"""`triage causes audit` as a maintainer meets it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from command_line import Run, is_an_error

CASES = Path(__file__).parents[2] / "fixtures/cases"


def test_the_audit_of_the_own_cases_finds_every_case_on_its_diagonal(triage: Run) -> None:
    done = triage("causes", "audit", "--json")
    document = json.loads(done.stdout)
    assert document["schema"] == "triage.audit/1"
    assert done.returncode == (14 if document["found"] else 0)
    assert document["cases"] == len(list(CASES.glob("*/case.yaml")))
    known = {
        case.parent.name
        for case in CASES.glob("*/case.yaml")
        if "known_miss: false" not in case.read_text()
    }
    assert sum(cell["cases"] for cell in document["confusion"]) <= len(known)


def test_a_folder_with_few_cases_leaves_most_causes_without_one(
    triage: Run, tmp_path: Path
) -> None:
    case = min(CASES.glob("graph-capture-oom--*"))
    shutil.copytree(case, tmp_path / "cases" / case.name)
    text = (tmp_path / "cases" / case.name / "case.yaml").read_text()
    (tmp_path / "cases" / case.name / "case.yaml").write_text(
        text.replace("cause: graph-capture-oom", "cause: weight-oom")
    )
    done = triage("causes", "audit", "cases")
    assert done.returncode == 14
    lines = done.stdout.splitlines()
    assert lines[1:3] == [
        "confusion matrix: 0 on the diagonal, 1 off it",
        "     1  weight-oom -> graph-capture-oom",
    ]
    assert f"  weight-oom is taken for graph-capture-oom in 1 case: {case.name}." in lines
    assert "  graph-capture-oom wins no case: it has no case." in lines
    assert "  weight-oom wins no case: its 1 case show something else." in lines


def test_healthy_logs_are_searched_for_frequent_literals(triage: Run, tmp_path: Path) -> None:
    case = min(CASES.glob("healthy--*"))
    shutil.copytree(case, tmp_path / "cases" / case.name)
    (tmp_path / "good").mkdir()
    (tmp_path / "good/a.log").write_text(
        "[2026-01-01 00:00:00] it says No module named nothing\n" * 50
    )
    found = json.loads(triage("causes", "audit", "cases", "--benign", "good", "--json").stdout)
    common = [entry["say"] for entry in found["found"] if entry["kind"] == "common-literal"]
    assert any("'No module named '" in say for say in common)
    done = triage("causes", "audit", "cases", "--json", "--exit-zero")
    before = json.loads(done.stdout)
    assert before["found"]
    assert done.returncode == 0
    assert (
        found["benign_bytes"] - before["benign_bytes"] == (tmp_path / "good/a.log").stat().st_size
    )


def test_a_folder_without_cases_is_an_error(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    is_an_error(triage("causes", "audit", "empty"), 3, "^empty holds no case")
    is_an_error(triage("causes", "audit", "nowhere"), 2, "^nowhere is no folder$")

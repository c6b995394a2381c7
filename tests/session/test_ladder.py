"""The rungs below a launch, with a stand-in for the engine: what is answered without a launch."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, is_an_error

ROOT = Path(__file__).parents[2]
STAND_IN = ROOT / "tests/launch/stand_in"
pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in gives its own flag table, which is kept in the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def recipe(folder: Path, wanted: str, **more: str) -> Path:
    """A search on the stand-in."""
    lines = [
        "schema: triage.recipe/1",
        "name: ladder",
        "launch:",
        f"  command: [{sys.executable}, -m, sglang.launch_server]",
        f"  env: {{PYTHONPATH: {STAND_IN}}}",
        "  patience: {silent: 20s, total: 40s}",
        "baseline: {flags: {model-path: /m}}",
        f"wanted: [{wanted}]",
        *(f"{key}: {value}" for key, value in more.items()),
    ]
    path = folder / "r.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


PAIR = "{flag: page-size, value: 16}, {flag: chunked-prefill-size, value: 100}"


def journal(session: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (session / "journal.jsonl").read_text().splitlines()]


def test_a_refused_pair_is_found_without_a_launch(triage: Run, tmp_path: Path) -> None:
    path = recipe(tmp_path, PAIR, rungs="[resolution]")
    done = triage("bisect", path, "--session", tmp_path / "s", "--json")
    assert done.returncode == 12, done.stderr
    found = json.loads(done.stdout)
    assert [(s["items"], s["minimal"]) for s in found["sets"]] == [
        (["chunked-prefill-size", "page-size"], True)
    ]
    assert found["reason"] == "resolved"
    assert found["config"] is None
    assert found["spent"]["launches"] == 0
    assert found["spent"]["without_launch"] == 3
    assert found["spent"]["saved_launches"] == 1
    assert found["spent"]["saved_seconds"] > 0
    trials = journal(tmp_path / "s")
    assert [(t["rung"], t["seen"]) for t in trials] == [
        ("resolution", "fails"), ("resolution", "passes"), ("resolution", "passes"),
    ]  # fmt: skip
    assert trials[0]["early"]
    assert trials[0]["phase"] == "arg-validation"
    kept = tmp_path / "s/trials/001"
    assert "chunk must be divisible" in (kept / "server.log").read_text()
    assert json.loads((kept / "resolution.json").read_text())["verdict"] == "rejected"
    assert json.loads((kept / "diagnosis.json").read_text())["outcome"] == "failed"


def test_a_search_goes_on_with_launches_and_says_what_was_saved(
    triage: Run, tmp_path: Path
) -> None:
    path = recipe(tmp_path, PAIR)
    done = triage("bisect", path, "--session", tmp_path / "s")
    assert done.returncode == 0, done.stderr
    trials = journal(tmp_path / "s")
    assert [t["rung"] for t in trials] == ["resolution"] * 3 + ["full"] * 2
    assert [t["seen"] for t in trials[3:]] == ["starts", "starts"]
    assert [len(t["items"]) for t in trials[3:]] == [0, 1], "the baseline, and the better half"
    assert all(t["resolved_key"] for t in trials if t["seen"] != "fails")
    assert "PASSES" in done.stderr
    assert "2 launches; 3 answers without a launch: 1 launch and at least" in done.stdout
    assert "resolution does not see" in done.stdout

    again = triage("bisect", "--session", tmp_path / "s")
    assert again.returncode == 0, again.stderr
    assert journal(tmp_path / "s") == trials, "the search is over: nothing is asked again"


def test_a_search_that_was_cut_off_goes_on_without_asking_again(
    triage: Run, tmp_path: Path
) -> None:
    path = recipe(tmp_path, PAIR)
    triage("bisect", path, "--session", tmp_path / "s")
    whole = (tmp_path / "s/journal.jsonl").read_text()
    lines = whole.splitlines(keepends=True)
    (tmp_path / "s/journal.jsonl").write_text("".join(lines[:4]))
    again = triage("bisect", "--session", tmp_path / "s")
    assert again.returncode == 0, again.stderr
    trials = journal(tmp_path / "s")
    assert (tmp_path / "s/journal.jsonl").read_text().startswith("".join(lines[:4]))
    assert [t["rung"] for t in trials[4:]] == ["full"]


def test_without_the_rung_the_engine_is_not_asked(triage: Run, tmp_path: Path) -> None:
    path = recipe(tmp_path, PAIR)
    triage("bisect", path, "--session", tmp_path / "s", "--rungs", "full")
    assert {t["rung"] for t in journal(tmp_path / "s")} == {"full"}


def test_a_baseline_that_the_engine_refuses_is_told_without_a_launch(
    triage: Run, tmp_path: Path
) -> None:
    path = recipe(tmp_path, "{flag: skip-server-warmup}")
    path.write_text(
        path.read_text().replace("{model-path: /m}", "{model-path: /m, nonsense-flag: 1}")
    )
    done = triage("bisect", path, "--session", tmp_path / "s")
    assert done.returncode in (10, 11), done.stderr
    assert "said to start fails" in done.stderr
    (trial,) = journal(tmp_path / "s")
    assert (trial["rung"], trial["items"], trial["phase"]) == ("resolution", [], "arg-parse")


def test_an_engine_that_cannot_be_imported_leaves_the_launches(triage: Run, tmp_path: Path) -> None:
    path = recipe(tmp_path, PAIR)
    path.write_text(path.read_text().replace("{PYTHONPATH:", "{STAND_IN_IMPORT: boom, PYTHONPATH:"))
    done = triage("bisect", path, "--session", tmp_path / "s")
    assert "the engine is not asked before a launch: RuntimeError: boom" in done.stderr
    assert {t["rung"] for t in journal(tmp_path / "s")} == {"full"}


def test_a_rung_that_does_not_exist_is_a_sentence(triage: Run, tmp_path: Path) -> None:
    path = recipe(tmp_path, PAIR)
    is_an_error(triage("bisect", path, "--rungs", "ladder"), 2, "no rung 'ladder'")
    path.write_text(path.read_text() + "rungs: [ladder]\n")
    is_an_error(triage("bisect", path), 2, "rungs")


def test_rules_of_the_knowledge_base_refuse_where_the_engine_is_not_asked(
    triage: Run, tmp_path: Path
) -> None:
    path = recipe(tmp_path, PAIR, rungs="[static]")
    done = triage("bisect", path, "--session", tmp_path / "s", "--json")
    found = json.loads(done.stdout)
    assert [(s["items"], s["cause"]) for s in found["sets"]] == [
        (["chunked-prefill-size", "page-size"], "args-not-a-multiple")
    ]
    (trial,) = journal(tmp_path / "s")
    assert (trial["rung"], trial["seen"]) == ("static", "fails")
    kept = json.loads((tmp_path / "s/trials/001/resolution.json").read_text())
    assert (kept["basis"], kept["rules"]) == ("knowledge", ["chunk-of-whole-pages"])


def test_configurations_that_are_the_same_to_the_engine_share_a_verdict(
    triage: Run, tmp_path: Path
) -> None:
    """To the stand-in a page of 16 is one of 64; so the second is not launched."""
    path = recipe(tmp_path, "{flag: page-size, value: 16}")
    path.write_text(path.read_text().replace("{model-path: /m}", "{model-path: /m, page-size: 64}"))
    triage("bisect", path, "--session", tmp_path / "s")
    first, second = journal(tmp_path / "s")
    assert (first["items"], first["rung"], first["seen"], first["same_as"]) == (
        [], "full", "starts", None,
    )  # fmt: skip
    assert (second["items"], second["rung"], second["seen"], second["same_as"]) == (
        ["page-size"], "resolution", "starts", 1,
    )  # fmt: skip
    assert second["saved_seconds"] == first["seconds"]
    assert second["resolved_key"] == first["resolved_key"] != ""
    log = (tmp_path / "s/trials/002/server.log").read_text()
    assert "fired up and ready" in log, "the log of the launch is its evidence"


def test_what_was_not_launched_is_told_so_in_every_document(triage: Run, tmp_path: Path) -> None:
    path = recipe(tmp_path, PAIR, rungs="[resolution]")
    triage("bisect", path, "--session", tmp_path / "s")
    assert {t["provenance"] for t in journal(tmp_path / "s")} == {"resolved"}
    done = triage("runbook", tmp_path / "s")
    page = (tmp_path / "s/runbook.md").read_text()
    assert done.returncode == 0, done.stderr
    assert "| PASSES the checks |" in page
    assert "| the engine's own checks |" in page
    assert "| launched |" not in page
    report = triage("issue", tmp_path / "s")
    assert report.returncode == 0, report.stderr
    assert "accepted by the checks before any process, not launched" in report.stdout
    plan = triage("plan", tmp_path / "s")
    assert plan.returncode == 0, plan.stderr

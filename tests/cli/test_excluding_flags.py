"""A recipe whose flags exclude each other, at the command line, on the simulated engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run

from triage.replay.landscape import Ending, write_landscape

A, B = "flag-a", "flag-b"
pytestmark = pytest.mark.real


def recipe_in(folder: Path, ends: Ending, goal: str) -> Path:
    """Two flags that exclude each other; the one that is wanted less ends as told."""
    starts = Ending(ends="starts")
    write_landscape(
        folder / "l.yaml", {frozenset(): starts, frozenset({A}): starts, frozenset({B}): ends}
    )
    path = folder / "r.yaml"
    path.write_text(
        "schema: triage.recipe/1\nname: test\nengine: replay\nlandscape: l.yaml\nspeed: 1000\n"
        "launch: {patience: {silent: 5m, total: 60m}}\n"
        "baseline: {flags: {model-path: /m}}\n"
        f"wanted: [{{flag: {A}, weight: 2}}, {{flag: {B}}}]\nnot_both: [[{A}, {B}]]\n"
        f"goal: {goal}\nbudget: {{trials: 9, hours: 1}}\n"
    )
    return path


def test_a_dry_run_shows_no_command_that_the_rules_forbid(triage: Run, tmp_path: Path) -> None:
    done = triage("bisect", recipe_in(tmp_path, Ending(ends="starts"), "all"), "--dry-run")
    assert done.returncode == 0, done.stderr
    tree, shown = done.stdout.split("The baseline, as it would be launched:")
    assert "launch 2: flag-a" in tree
    assert "launch 3: flag-b" in tree
    assert "The most that is allowed, as it would be launched:" in shown
    assert f"--{A}" in shown
    assert f"--{B}" not in shown
    assert max(map(len, tree.splitlines())) <= 80


def test_the_flag_that_is_wanted_less_is_launched_before_nothing_is_said_to_fail(
    triage: Run, tmp_path: Path
) -> None:
    recipe = recipe_in(tmp_path, Ending(ends="starts"), "first")
    done = triage("bisect", recipe, "--session", "s")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "claim nothing that the rules allow fails: proved, if adding a flag never" in said
    assert "drop flag-b not both flag-b and flag-a, which is kept, as a rule says" in said
    assert "also started {flag-b}" in said
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "if it starts, what it leaves out is next" in done.stderr
    assert len((tmp_path / "s/journal.jsonl").read_text().splitlines()) == 3
    assert triage("runbook", "s").returncode == 0
    page = (tmp_path / "s/runbook.md").read_text()
    assert "is wanted; the rules do not allow all of that at once." in page
    assert "report the failure" not in page, "nothing failed"


def test_the_flag_that_is_wanted_less_is_the_failing_set(triage: Run, tmp_path: Path) -> None:
    fails = Ending(ends="exception", phase="weight-load", exception="ValueError", message="b")
    recipe = recipe_in(tmp_path, fails, "all")
    done = triage("bisect", recipe, "--session", "s", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [(s["items"], s["minimal"]) for s in found["sets"]] == [([B], True)]
    assert {c["flag"] for c in found["keep"]} == {"model-path", A}
    assert triage("runbook", "s").returncode == 0
    page = (tmp_path / "s/runbook.md").read_text()
    assert f"{{{B}}}" in page
    assert "report the failure to the engine's authors" in page

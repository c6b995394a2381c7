"""`triage plan`: the next launches of a session, without a launch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run, is_an_error

from triage.replay.landscape import Ending, write_landscape

pytestmark = pytest.mark.real


@pytest.fixture
def session(triage: Run, tmp_path: Path) -> Path:
    """A search of two flags, of which one fails, that made its first two launches."""
    fails = Ending(ends="exception", phase="weight-load", exception="ValueError", message="no room")
    a, b = frozenset({"flag-a"}), frozenset({"flag-b"})
    starts = Ending(ends="starts")
    write_landscape(tmp_path / "l.yaml", {frozenset(): starts, a: fails, b: starts, a | b: fails})
    (tmp_path / "r.yaml").write_text(
        "schema: triage.recipe/1\nname: two\nengine: replay\nlandscape: l.yaml\nspeed: 1000\n"
        "baseline: {flags: {model-path: /m}}\nwanted: [{flag: flag-a}, {flag: flag-b}]\n"
    )
    assert triage("bisect", "r.yaml", "--session", "s", "--trials", "2").returncode == 12
    return tmp_path / "s"


def test_the_next_launch_is_told_with_its_reason_and_nothing_is_launched(
    triage: Run, session: Path
) -> None:
    before = (session / "journal.jsonl").read_bytes()
    done = triage("plan", session, "--json")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert (told["made"], told["ended"]["reason"]) == (2, "budget")
    assert told["forecast"]["minutes"] >= 0
    (trial,) = told["trials"]
    assert trial["number"] == 3
    assert len(trial["why"]) > 20
    assert {"flag-a", "flag-b"} & set(trial["items"])
    assert trial["config"]["flags"]["model-path"] == "/m"
    assert (session / "journal.jsonl").read_bytes() == before
    assert sorted(p.name for p in (session / "trials").iterdir()) == ["001", "002"]


def test_what_is_planned_is_what_is_launched_next(triage: Run, session: Path) -> None:
    (planned,) = json.loads(triage("plan", session, "--json").stdout)["trials"]
    assert triage("bisect", "--session", session, "--trials", "9").returncode == 0
    third = json.loads((session / "journal.jsonl").read_text().splitlines()[2])
    assert (third["items"], third["why"]) == (planned["items"], planned["why"])
    told = json.loads(triage("plan", session, "--json").stdout)
    assert told["trials"] == []
    assert told["ended"]["reason"] == "found"


def test_a_plan_for_people_has_the_answers_that_may_follow(triage: Run, session: Path) -> None:
    said = triage("plan", session, "--depth", "2").stdout
    assert "next, launch 3: " in said
    assert "starts:" in said


def test_a_plan_of_nothing_says_what_to_do(triage: Run, tmp_path: Path) -> None:
    is_an_error(triage("plan", tmp_path / "none"), 3, "session")

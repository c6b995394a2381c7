"""Proposals of a searched session: what started, what nobody tried, in the user's own form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run

from triage.core.handover.proposals import Basis
from triage.session.proven import proven

ROOT = Path(__file__).parents[2]
KIMI = ROOT / "recipes/kimi-k2.6-b300.yaml"
FAST = ("--engine", "replay", "--speed", "400")
pytestmark = pytest.mark.real


@pytest.fixture
def session(triage: Run, tmp_path: Path) -> Path:
    done = triage("bisect", KIMI, *FAST, "--session", "s")
    assert done.returncode == 0, done.stderr
    return tmp_path / "s"


def test_what_started_comes_first_and_what_was_not_tried_keeps_more(
    session: Path, triage: Run
) -> None:
    found = proven(session)
    first, *rest = found.found.options
    assert first.basis is Basis.LAUNCHED
    assert first.trial == found.recommendation.proof
    assert first.config == found.recommendation.config
    assert set(first.given_up) == {"ep-size", "enable-flashinfer-allreduce-fusion"}
    untried = [option for option in rest if option.trial is None]
    assert untried
    assert all(option.weight < first.weight for option in untried)
    done = triage("recommend", session, "--json")
    document = json.loads(done.stdout)
    assert document["schema"] == "triage.recommendation/1"
    pasted = document["proposals"][0]
    assert "--ep-size" not in pasted["command"]
    assert "-  --ep-size 8" in pasted["diff"].splitlines()
    assert document["proposals"][0]["trial"] == document["proof"]
    text = triage("recommend", session).stdout
    assert "not tried here, would keep more" in text
    assert pasted["command"].strip() in text

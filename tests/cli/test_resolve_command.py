"""`triage resolve` with a stand-in for the engine: text, JSON, exit codes, bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, is_an_error
from jsonschema import Draft202012Validator

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/schema/resolution-1.json").read_text())
ENGINE = (sys.executable, "-m", "sglang.launch_server", "--model-path", "/m")

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests/launch/stand_in"))


def document(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    Draft202012Validator(SCHEMA).validate(found)
    return found


def test_an_accepted_command_shows_what_was_not_taken_as_given(triage: Run) -> None:
    done = triage("resolve", "--", *ENGINE, "--page-size", "16")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("accepted by sglang 9.8.7 in ")
    assert "--page-size 16 -> 64" in done.stdout
    assert "not seen without a launch" in done.stdout


def test_a_rejected_command_has_the_exception_and_its_place_in_json(triage: Run) -> None:
    done = triage(
        "resolve", "--json", "--", *ENGINE, "--chunked-prefill-size", "3", "--page-size", "2"
    )
    assert done.returncode in (10, 11)
    found = document(done.stdout)
    assert (found["verdict"], found["basis"], found["phase"]) == (
        "rejected", "engine", "arg-validation",
    )  # fmt: skip
    assert found["frame"]["function"] == "resolve"
    assert found["message"] == "chunk must be divisible by page_size"
    assert found["signature"]
    assert found["resolved"] == {}


def test_a_command_in_a_file_is_resolved(triage: Run, tmp_path: Path) -> None:
    file = tmp_path / "serve.sh"
    file.write_text(f"#!/bin/sh\nexec {' '.join(ENGINE)} --policy nonsense\n")
    done = triage("resolve", file, "--json")
    found = document(done.stdout)
    assert (found["verdict"], found["exit_code"], found["phase"]) == ("rejected", 2, "arg-parse")
    assert "invalid choice" in found["message"]


def test_without_an_answer_nothing_is_said_to_be_known(
    triage: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_IMPORT", "boom")
    is_an_error(triage("resolve", "--", *ENGINE), 13, "nothing is known without a launch.*boom")


@pytest.mark.parametrize(
    ("words", "code", "pattern"),
    [
        (["resolve"], 2, "no command was given"),
        (["resolve", "/nonexistent.sh"], 2, "no such file"),
        (["resolve", "--timeout", "soon", "--", *ENGINE], 2, "soon"),
        (["resolve", "--python", "/nonexistent/python", "--", *ENGINE], 2, "does not exist"),
        (["resolve", "--", "docker", "run", "img", *ENGINE[:3], "--model-path", "/m"], 13, "container"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(triage: Run, words: list[str], code: int, pattern: str) -> None:
    is_an_error(triage(*words), code, pattern)


def test_where_the_engine_cannot_be_asked_the_knowledge_base_is_and_says_so(
    triage: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_IMPORT", "boom")
    words = [*ENGINE, "--enable-priority-scheduling", "--schedule-policy", "lpm"]
    done = triage("resolve", "--", *words)
    assert done.stdout.startswith("rejected by the knowledge base")
    assert "rule priority-needs-fcfs-or-lof" in done.stdout
    found = document(triage("resolve", "--json", "--", *words).stdout)
    assert (found["verdict"], found["basis"]) == ("rejected", "knowledge")
    assert found["rules"] == ["priority-needs-fcfs-or-lof"]

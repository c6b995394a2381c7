"""A session folder is found again, claimed once, and written whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from triage.errors import HostError, NothingError, UsageError
from triage.store import SessionFolder, find_session, newest_session

FACTS = {"digest": "d1", "name": "n"}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_newest_session_is_the_default() -> None:
    SessionFolder.create(Path(".triage/2026-01-01-000000"), FACTS)
    newest = SessionFolder.create(Path(".triage/2026-01-02-000000"), FACTS)
    assert newest_session() == newest.path


def test_two_sessions_of_one_second_have_two_folders() -> None:
    first, second = (SessionFolder.create(None, FACTS) for _ in range(2))
    assert first.path != second.path
    assert first.path.parent == second.path.parent == Path(".triage")


def test_only_an_unfinished_session_of_the_same_problem_is_resumed() -> None:
    session = SessionFolder.create(None, FACTS)
    assert find_session("d1") == session.path
    assert find_session("d2") is None
    session.write("recommendation.json", {"reason": "found"})
    assert find_session("d1") is None


def test_no_session_says_how_to_get_one() -> None:
    with pytest.raises(NothingError) as caught:
        newest_session()
    assert caught.value.hint.startswith("triage bisect ")


def test_a_session_is_claimed_by_one_process() -> None:
    session = SessionFolder.create(None, FACTS)
    session.lock()
    code = (
        "import sys; from pathlib import Path; from triage.store import SessionFolder\n"
        "from triage.errors import HostError\n"
        "try: SessionFolder.open(Path(sys.argv[1])).lock()\n"
        "except HostError as e: print(e.message)"
    )
    other = subprocess.run(
        [sys.executable, "-c", code, str(session.path)], capture_output=True, text=True, check=True
    )
    assert other.stdout == f"another triage works in {session.path}\n"


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(UsageError, match="is not empty"):
        SessionFolder.create(tmp_path / "mine", FACTS)
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_path_that_cannot_be_written_is_the_hosts_fault() -> None:
    with pytest.raises(HostError, match="cannot write /proc/nothing"):
        SessionFolder.create(Path("/proc/nothing"), FACTS)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"schema": "triage.session/99"}'])
def test_a_damaged_session_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "session.json").write_text(content)
    with pytest.raises(UsageError, match="is not a session of this version"):
        SessionFolder.open(tmp_path)


def test_secrets_never_reach_the_disk() -> None:
    session = SessionFolder.create(None, {**FACTS, "note": "--api-key sekret123"})
    session.write("runbook.md", "HF_TOKEN=hf_" + "a" * 34)
    assert "sekret123" not in (session.path / "session.json").read_text()
    session.write(
        "c.json",
        {"flags": {"api-key": "hush", "max-total-tokens": "8"}, "say": 'a "api_key=12345" b'},
    )
    assert session.read("c.json") == {
        "flags": {"api-key": "REDACTED", "max-total-tokens": "8"},
        "say": 'a "api_key=REDACTED" b',
    }
    assert "aaaa" not in (session.path / "runbook.md").read_text()


def test_a_document_is_replaced_whole() -> None:
    session = SessionFolder.create(None, FACTS)
    session.write("a.json", {"x": 1})
    session.write("a.json", {"x": 2})
    assert json.loads((session.path / "a.json").read_text()) == {"x": 2}
    assert session.read("a.json") == {"x": 2}
    assert session.read("none.json") is None
    assert not list(session.path.glob(".*.new"))

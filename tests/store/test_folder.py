"""A session folder is found again, claimed once, and written whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from triage.errors import HostError, NothingError, UsageError
from triage.store import SessionFolder, find_session, newest_session

FACTS = {
    "digest": "d1", "name": "n", "engine": "sglang", "simulated": False, "replay": None, "sources": {},
}  # fmt: skip


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
    session.write("recommendation.json", {"reason": "unfinished"})
    assert find_session("d1") == session.path, "a document does not end a search"
    session.note(ended="budget")
    assert find_session("d1") == session.path, "a larger budget goes on"
    session.note(ended="found")
    assert find_session("d1") == session.path, "an answer is not asked for twice"
    session.note(ended="baseline-fails")
    assert find_session("d1") is None, "what was wrong may have been mended"


def test_a_single_launch_is_no_session_of_a_search() -> None:
    search = SessionFolder.create(None, FACTS)
    SessionFolder.create(None, {**FACTS, "digest": "", "name": "run"})
    assert newest_session() == search.path


def test_the_newest_is_told_by_its_date_and_not_by_its_name() -> None:
    SessionFolder.create(Path(".triage/zzz-demo"), FACTS)
    newest = SessionFolder.create(Path(".triage/aaa"), FACTS)
    assert newest_session() == newest.path


def test_what_a_killed_creation_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "s" / "trials").mkdir(parents=True)
    (tmp_path / "s" / "recipe.yaml").write_text("half")
    (tmp_path / "s" / ".session.json.new").write_text("{")
    session = SessionFolder.create(tmp_path / "s", FACTS, beside={"recipe.yaml": "whole"})
    assert (session.path / "recipe.yaml").read_text() == "whole"


def test_a_damaged_session_or_document_is_passed_over_or_named() -> None:
    (Path(".triage") / "bad").mkdir(parents=True)
    (Path(".triage") / "bad" / "session.json").write_text("{")
    session = SessionFolder.create(None, FACTS)
    assert newest_session() == session.path
    (session.path / "confirmation.json").write_text("{")
    with pytest.raises(UsageError, match=r"confirmation\.json is damaged"):
        session.read("confirmation.json")


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
    with pytest.raises(UsageError, match=r"is not a session of this version|is damaged"):
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


def test_nothing_of_a_killed_launch_is_left_in_its_folder_not_even_a_dangling_link(
    tmp_path: Path,
) -> None:
    session = SessionFolder.create(tmp_path / "s", FACTS)
    folder = session.trial_folder(1)
    (folder / "server.log").symlink_to(tmp_path / "nowhere")
    (folder / "exit.json").symlink_to(tmp_path)
    (folder / "diagnosis.json").write_text("{}")
    os.mkfifo(folder / "stacks.txt")
    assert list(session.trial_folder(1).iterdir()) == []
    assert tmp_path.is_dir()

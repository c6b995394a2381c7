"""Sessions between commands: what is resumed, what is forgotten, which one is meant."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import Run, is_an_error

from triage.replay.landscape import Ending, write_landscape

pytestmark = pytest.mark.real
STARTS = Ending(ends="starts")
FAILS = Ending(ends="exception", phase="weight-load", exception="ValueError", message="no room")


def recipe(folder: Path, table: dict[frozenset[str], Ending] | None = None) -> Path:
    """A recipe for one flag, flag-a, which fails unless the table says otherwise."""
    folder.mkdir(parents=True, exist_ok=True)
    table = table or {frozenset(): STARTS, frozenset({"flag-a"}): FAILS}
    write_landscape(folder / "l.yaml", table)
    flags = sorted({flag for keys in table for flag in keys})
    wanted = "".join(f"  - {{flag: {flag}}}\n" for flag in flags)
    path = folder / "r.yaml"
    path.write_text(
        "schema: triage.recipe/1\nname: test\nengine: replay\nlandscape: l.yaml\nspeed: 1000\n"
        f"baseline: {{flags: {{model-path: /m}}}}\nwanted:\n{wanted}"
    )
    return path


def test_a_search_that_ran_out_of_budget_goes_on_with_more(triage: Run, tmp_path: Path) -> None:
    path = recipe(tmp_path)
    assert triage("bisect", path, "--trials", "1").returncode == 12
    done = triage("bisect", path, "--trials", "9")
    assert done.returncode == 0
    assert "resumed with 1 finished trial\n" in done.stderr
    assert len(list(tmp_path.glob(".triage/*"))) == 1


def test_a_runbook_in_between_does_not_end_a_search(triage: Run, tmp_path: Path) -> None:
    path = recipe(tmp_path)
    assert triage("bisect", path, "--trials", "1").returncode == 12
    assert triage("runbook").returncode == 0
    assert "resumed with 1 finished trial\n" in triage("bisect", path).stderr


def test_a_session_goes_on_by_its_folder_alone(triage: Run, tmp_path: Path) -> None:
    done = triage("bisect", recipe(tmp_path), "--trials", "1", "--session", "s")
    assert done.stderr.splitlines()[-1] == "  try: triage bisect --session s --trials 2"
    assert triage("bisect", "--session", "s", "--trials", "2").returncode == 0


def test_the_same_recipe_in_two_folders_is_two_problems(triage: Run, tmp_path: Path) -> None:
    first, second = recipe(tmp_path / "a"), recipe(tmp_path / "b")
    assert triage("bisect", first, "--trials", "1").returncode == 12
    assert "resumed" not in triage("bisect", second, "--trials", "1").stderr


def test_a_single_launch_is_never_taken_for_a_search(triage: Run, tmp_path: Path) -> None:
    assert triage("bisect", recipe(tmp_path), "--session", ".triage/x").returncode == 0
    triage("run", "--", "python3", "-c", "print('hello')", "--model-path", "/m")
    assert triage("recommend").returncode == 0
    (single,) = (p for p in tmp_path.glob(".triage/*") if p.name != "x")
    is_an_error(triage("recommend", single), 3, r"server.log holds no line of an engine")


def test_a_confirmation_that_fails_takes_an_earlier_one_with_it(
    triage: Run, tmp_path: Path
) -> None:
    assert triage("bisect", recipe(tmp_path), "--session", "s").returncode == 0
    assert triage("confirm", "s").returncode == 0
    triage("runbook", "s")
    assert "configuration works" in (tmp_path / "s/runbook.md").read_text()
    write_landscape(tmp_path / "l.yaml", {frozenset(): FAILS, frozenset({"flag-a"}): FAILS})
    done = triage("confirm", "s")
    assert done.returncode == 12
    assert "not confirmed: the launch failed this time" in done.stdout
    triage("runbook", "s")
    page = (tmp_path / "s/runbook.md").read_text()
    assert "configuration works" not in page
    assert "Not confirmed" in page


def test_two_triages_never_work_in_one_session(triage: Run, tmp_path: Path) -> None:
    import fcntl

    assert triage("bisect", recipe(tmp_path), "--session", "s").returncode == 0
    with (tmp_path / "s/lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for words in (["bisect", "--session", "s"], ["confirm", "s"], ["runbook", "s"]):
            is_an_error(triage(*words), 4, r"^another triage works in s$")
        assert triage("recommend", "s").returncode == 0, "reading needs no lock"


def test_exit_zero_silences_findings_and_nothing_else(triage: Run, tmp_path: Path) -> None:
    path = recipe(tmp_path, {frozenset(): STARTS, frozenset({"flag-a"}): STARTS})
    assert triage("bisect", path).returncode == 13
    assert triage("bisect", path, "--exit-zero").returncode == 0
    assert triage("bisect", "nowhere.yaml", "--exit-zero").returncode == 2


def test_what_was_diagnosed_is_named_if_it_is_not_what_was_wanted(
    triage: Run, tmp_path: Path
) -> None:
    table = {frozenset(): STARTS, frozenset({"flag-a"}): FAILS, frozenset({"flag-b"}): FAILS}
    path = recipe(tmp_path, table)  # both together: no entry, so they are refused
    triage("bisect", path, "--session", "s")
    triage("runbook", "s")
    page = (tmp_path / "s/runbook.md").read_text()
    assert re.search(r"The launch with flag-[ab] on top of the baseline failed", page)


def test_the_documents_of_a_session_are_no_logs(triage: Run, tmp_path: Path) -> None:
    assert triage("bisect", recipe(tmp_path), "--session", "s").returncode == 0
    done = triage("classify", "s", "--json")
    sources = [json.loads(line)["source"] for line in done.stdout.splitlines()]
    assert sources == sorted(str(p) for p in Path("s").glob("trials/*/server.log"))


def test_a_launch_that_the_budget_ended_is_no_verdict(triage: Run, tmp_path: Path) -> None:
    slow = Ending(ends="hang", phase="weight-load")
    path = recipe(tmp_path, {frozenset(): STARTS, frozenset({"flag-a"}): slow})
    path.write_text(path.read_text() + "launch: {patience: {silent: 10h, total: 20h}}\n")
    done = triage("bisect", path, "--hours", "0.001", "--session", "s")
    assert done.returncode == 12
    assert "it ended trial 2, which proves nothing" in done.stderr
    entries = (tmp_path / "s/journal.jsonl").read_text().splitlines()
    assert [json.loads(line)["items"] for line in entries] == [[]]


def test_what_is_wanted_now_counts_and_not_what_was(triage: Run, tmp_path: Path) -> None:
    table = {
        frozenset(): STARTS, frozenset({"flag-a"}): STARTS, frozenset({"flag-b"}): STARTS,
        frozenset({"flag-a", "flag-b"}): FAILS,
    }  # fmt: skip
    path = recipe(tmp_path, table)
    text = path.read_text()
    for heavy, light in (("flag-a", "flag-b"), ("flag-b", "flag-a")):
        path.write_text(text.replace(f"{{flag: {heavy}}}", f"{{flag: {heavy}, weight: 9}}"))
        assert triage("bisect", path, "--session", "s").returncode == 0
        document = json.loads(triage("recommend", "s", "--json").stdout)
        assert [c["flag"] for c in document["drop"]] == [light]
        assert set(json.loads(triage("confirm", "s", "--json").stdout)["items"]) == {heavy}


def test_a_session_is_not_begun_anew_in_its_own_folder(triage: Run, tmp_path: Path) -> None:
    path = recipe(tmp_path)
    assert triage("bisect", path, "--session", "s").returncode == 0
    is_an_error(
        triage("bisect", path, "--session", "s", "--fresh"), 2, r"^s holds a session already$"
    )


def test_the_runbook_says_what_had_to_be_assumed(triage: Run, tmp_path: Path) -> None:
    path = recipe(tmp_path)
    path.write_text(path.read_text() + "engine_version: '0.4.9'\n")
    done = triage("bisect", path, "--session", "s")
    assert "note: engine_version 0.4.9: flags are read with the table of" in done.stderr
    triage("runbook", "s")
    assert "engine_version 0.4.9: flags are read" in (tmp_path / "s/runbook.md").read_text()


def test_a_damaged_session_has_a_way_out(triage: Run, tmp_path: Path) -> None:
    assert triage("bisect", recipe(tmp_path), "--session", "s").returncode == 0
    facts = json.loads((tmp_path / "s/session.json").read_text())
    (tmp_path / "s/session.json").write_text(json.dumps({**facts, "replay": 3}))
    is_an_error(triage("recommend", "s"), 2, r"^s/session\.json is damaged$")

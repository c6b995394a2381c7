"""From a log that nobody understands to a cause that explains it, and folders of own causes."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path

import pytest
from command_line import Run, is_an_error

ROOT = Path(__file__).parents[2]
CASES = ROOT / "fixtures/cases"
UNKNOWN = sorted(CASES.glob("unknown--*"))
LOG = CASES / "unknown--wrapped-runtime-error-in-capture/server.log"


@pytest.fixture
def drafted(triage: Run, tmp_path: Path) -> Path:
    shutil.copy(LOG, tmp_path / "a.log")
    done = triage("causes", "new", "--from", "a.log")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "triage-knowledge/moe-align-block-size.yaml\n"
        "triage-knowledge/cases/moe-align-block-size--a/\n"
        "the draft explains the log; 4 keys are still to do\n"
        "next: triage causes check triage-knowledge\n"
    )
    return tmp_path / "triage-knowledge"


def test_a_draft_explains_its_log_and_says_what_is_left_to_do(triage: Run, drafted: Path) -> None:
    done = triage("classify", "a.log", "--knowledge", drafted)
    assert done.returncode == 10
    assert done.stdout.startswith("moe-align-block-size  (")
    done = triage("causes", "check", drafted)
    assert done.returncode == 14
    left = [line.rpartition(".yaml: ")[2] for line in done.stdout.splitlines()]
    assert left == [f"{key}: still to do" for key in ("title", "means", "remedies", "sources")]
    done = triage("check", drafted, "--knowledge", drafted)
    assert (done.returncode, done.stdout) == (0, "1 case: 1 as expected\n")


def test_a_draft_that_is_written_out_passes_the_check(triage: Run, drafted: Path) -> None:
    file = drafted / "moe-align-block-size.yaml"
    text = file.read_text()
    file.write_text(re.sub(r"'TODO: [^']*'", "'https://example.org/1'", text))
    done = triage("causes", "check", drafted)
    assert (done.returncode, done.stdout) == (0, "1 causes, nothing to report\n")


def test_nothing_is_overwritten(triage: Run, drafted: Path) -> None:
    before = {path: path.read_bytes() for path in drafted.rglob("*") if path.is_file()}
    again = triage("causes", "new", "--from", "a.log", "--json")
    is_an_error(again, 2, "^a.log has a cause already: moe-align-block-size$")
    (drafted / "moe-align-block-size.yaml").unlink()
    again = triage("causes", "new", "--from", "a.log")
    is_an_error(again, 2, "moe-align-block-size--a is there already; nothing was written$")
    assert not (drafted / "moe-align-block-size.yaml").exists()
    after = {path: path.read_bytes() for path in drafted.rglob("*") if path.is_file()}
    assert after.items() <= before.items()
    assert len(after) == 2


def test_the_folder_of_the_variable_is_used_everywhere(
    triage: Run, drafted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert triage("classify", "a.log").returncode == 11
    monkeypatch.setenv("TRIAGE_KNOWLEDGE", str(drafted))
    assert triage("classify", "a.log").returncode == 10
    assert triage("explain", "moe-align-block-size").returncode == 0
    assert "moe-align-block-size" in triage("causes", "list").stdout
    assert triage("cluster", "a.log").stdout == "1 log: 0 without a cause, in 0 groups\n"


def test_an_id_that_is_there_twice_is_refused(triage: Run, drafted: Path, tmp_path: Path) -> None:
    shutil.copytree(drafted, tmp_path / "other")
    done = triage("classify", "a.log", "--knowledge", drafted, "--knowledge", "other")
    is_an_error(
        done, 2, r"^other/moe-align-block-size\.yaml: the id moe-align-block-size is taken by "
    )
    shutil.copy(
        ROOT / "triage/knowledge/causes/weight-oom.yaml", tmp_path / "other/weight-oom.yaml"
    )
    (tmp_path / "other/moe-align-block-size.yaml").unlink()
    done = triage("classify", "a.log", "--knowledge", "other")
    is_an_error(done, 2, "is taken by a cause of triage's own$")
    assert "the id weight-oom is taken by a cause" in triage("causes", "check", "other").stdout
    is_an_error(
        triage("classify", "a.log", "--knowledge", "none"), 2, "^none is no folder of cause files$"
    )


def test_a_log_with_a_cause_or_without_a_reason_gives_no_draft(triage: Run) -> None:
    for start, code, said in (
        ("graph-capture-oom--", 2, "has a cause already: graph-capture-oom$"),
        ("healthy--", 3, "to make a pattern of: it is healthy$"),
        ("hung--", 3, "to make a pattern of: it hangs or was cut"),
        ("unknown--rank3-killed", 3, "to make a pattern of: no line of it says why it failed$"),
    ):
        log = min(CASES.glob(f"{start}*")) / "server.log"
        is_an_error(triage("causes", "new", "--from", log), code, said)
    is_an_error(triage("causes", "new", "--from", "nowhere.log"), 4, "cannot read nowhere.log")
    is_an_error(triage("causes", "new", "--from", LOG, "--id", "No_Id"), 2, "not kebab-case")
    is_an_error(triage("causes", "new", "--from", LOG, "--id", "weight-oom"), 2, "taken already")


def test_a_packed_log_is_unpacked_into_its_case(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(LOG.read_bytes()))
    done = triage("causes", "new", "--from", "a.log.gz", "--out", "k")
    assert done.returncode == 0, done.stderr
    assert triage("check", "k", "--knowledge", "k").stdout == "1 case: 1 as expected\n"


def test_secrets_and_names_do_not_get_into_the_draft(triage: Run, tmp_path: Path) -> None:
    told = "RuntimeError: gpu-7 says /home/jo/x/y hf_AbCdEfGhIjKlMnOpQrStUvWxYz01 10.9.8.7 tcp://gpu-7:1 "
    raw = LOG.read_text()
    assert "RuntimeError: moe_align" in raw
    (tmp_path / "a.log").write_text(raw.replace("RuntimeError: moe_align", f"{told}moe_align"))
    done = triage("causes", "new", "--from", "a.log", "--id", "own-thing", "--out", "k", "--json")
    document = json.loads(done.stdout)
    assert (document["id"], document["wins"]) == ("own-thing", True)
    for path in (tmp_path / "k").rglob("*"):
        if path.is_file():
            assert not re.search("gpu-7|/home/jo/|hf_Ab|10\\.9\\.8\\.7", path.read_text()), path
    assert triage("classify", "a.log", "--knowledge", "k").stdout.startswith("own-thing")


def test_a_line_that_only_tells_who_died_makes_no_pattern(triage: Run) -> None:
    case = next(one for one in UNKNOWN if "worker-died-unexpectedly" in one.name)
    done = triage("causes", "new", "--from", case / "server.log")
    assert done.returncode == 3
    assert "no line of it says why it failed" in done.stderr


def test_every_unknown_case_with_a_reason_gives_a_draft_that_wins(triage: Run) -> None:
    wins = []
    for case in UNKNOWN:
        done = triage("causes", "new", "--from", case / "server.log", "--json")
        if done.returncode == 0:
            wins.append((case.name, json.loads(done.stdout)["wins"]))
        else:
            assert done.returncode in (2, 3), done.stderr
    assert wins
    assert [name for name, won in wins if not won] == []


def test_no_yaml_is_read_where_no_folder_is_named(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys\nfrom triage.cli import run\nrun(['classify', sys.argv[1]])\n"
        "heavy = {'yaml', 'pydantic', 'rich', 'jinja2', 'triage.render.sarif', 'triage.render.junit'}\n"
        "sys.exit(','.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(LOG)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

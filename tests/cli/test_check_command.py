"""`triage check`, `triage cluster` and the reports of `triage classify`, as CI uses them."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from command_line import Run, is_an_error

CASES = Path(__file__).parents[2] / "fixtures/cases"
OOM = "graph-capture-oom--"
HEALTHY = "healthy--"


def copied(at: Path, start: str, name: str = "", **replace: str) -> Path:
    """The first case whose name begins so, in a folder of the test's own, its case.yaml changed."""
    source = min(CASES.glob(f"{start}*"))
    case = at / "cases" / (name or source.name)
    shutil.copytree(source, case)
    text = (case / "case.yaml").read_text()
    for old, new in replace.items():
        assert re.search(rf"(?m)^( *){old}: .*$", text), old
        text = re.sub(rf"(?m)^( *){old}: .*$", rf"\g<1>{old}: {new}", text)
    (case / "case.yaml").write_text(text)
    return case


def test_cases_as_expected_are_counted(triage: Run, tmp_path: Path) -> None:
    copied(tmp_path, OOM)
    copied(tmp_path, HEALTHY)
    done = triage("check", "cases")
    assert (done.returncode, done.stdout) == (0, "2 cases: 2 as expected\n")


def test_a_difference_is_told_with_its_line_and_ends_with_14(triage: Run, tmp_path: Path) -> None:
    case = copied(tmp_path, OOM, cause="weight-oom")
    done = triage("check", "cases")
    assert done.returncode == 14
    assert done.stdout.startswith(
        f"1 case: 1 different\n\n{case.name}  cases/{case.name}/server.log:"
    )
    assert re.search(
        r"\n  line \d+: cause: expected 'weight-oom', found 'graph-capture-oom'\n", done.stdout
    )
    assert triage("check", "cases", "--exit-zero").returncode == 0


def test_a_known_miss_must_differ(triage: Run, tmp_path: Path) -> None:
    copied(tmp_path, OOM, "a--x", cause="weight-oom", known_miss="'the head is cut'")
    done = triage("check", "cases", "--junit", "out.xml")
    assert (done.returncode, done.stdout) == (0, "1 case: 1 known to be missed\n")
    skipped = ET.parse(tmp_path / "out.xml").getroot().find(".//skipped")
    assert skipped is not None
    assert skipped.get("message") == "the head is cut"
    copied(tmp_path, OOM, "b--x", known_miss="true")
    done = triage("check", "cases")
    assert done.returncode == 14
    assert "\n  as expected now; set known_miss to false" in done.stdout


def test_a_case_that_cannot_be_read_is_a_finding_and_the_others_are_compared(
    triage: Run, tmp_path: Path
) -> None:
    copied(tmp_path, HEALTHY)
    broken = copied(tmp_path, OOM, "z--x")
    (broken / "case.yaml").write_text("schema: [")
    done = triage("check", "cases")
    assert done.returncode == 14
    assert done.stdout.startswith("2 cases: 1 as expected, 1 unreadable\n\nz--x: cannot be read\n")
    assert "cases/z--x/case.yaml:2: " in done.stdout


def test_a_folder_without_cases_is_told_in_a_sentence(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/server.log").write_text("x\n")
    done = triage("check", "logs")
    is_an_error(
        done, 3, r"^logs holds no case: a case is a folder with server\.log and case\.yaml$"
    )
    is_an_error(triage("check", "nowhere"), 2, r"^nowhere is no folder$")


def test_a_log_beside_the_cases_without_a_case_is_named(triage: Run, tmp_path: Path) -> None:
    copied(tmp_path, HEALTHY)
    extra = copied(tmp_path, OOM, "x--y")
    (extra / "case.yaml").unlink()
    done = triage("check", "cases")
    assert done.returncode == 0
    assert "not compared, for there is no case.yaml beside it: cases/x--y/server.log" in done.stdout


def test_one_case_may_be_named(triage: Run, tmp_path: Path) -> None:
    case = copied(tmp_path, HEALTHY)
    copied(tmp_path, OOM, cause="weight-oom")
    assert triage("check", case).returncode == 0


def test_all_reports_come_from_one_run(
    triage: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    (tmp_path / "summary.md").write_text("before\n")
    case = copied(tmp_path, OOM, cause="weight-oom")
    done = triage(
        "check", "cases", "--junit", "out/j.xml", "--sarif", "out/s.sarif", "--github", "--json"
    )
    assert done.returncode == 14
    document = json.loads(done.stdout)
    assert document["schema"] == "triage.comparison/1"
    assert document["counts"] == {
        "expected": 0,
        "differs": 1,
        "unreadable": 0,
        "mended": 0,
        "known-miss": 0,
    }
    (result,) = document["results"]
    assert (result["status"], result["cause"], result["expected"]) == (
        "differs",
        "graph-capture-oom",
        "weight-oom",
    )
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("::error ")]
    assert error.startswith(
        f"::error file=cases/{case.name}/server.log,line={result['line']},title="
    )
    failure = ET.parse(tmp_path / "out/j.xml").getroot().find(".//failure")
    assert failure is not None
    assert failure.get("type") == "graph-capture-oom"
    (found,) = json.loads((tmp_path / "out/s.sarif").read_text())["runs"][0]["results"]
    assert found["ruleId"] == "graph-capture-oom"
    assert (
        (tmp_path / "summary.md")
        .read_text()
        .startswith("before\n## triage check cases\n\n1 logs: 0 in order, 1 failed.")
    )


def test_classify_reports_logs_without_expectations(triage: Run, tmp_path: Path) -> None:
    copied(tmp_path, OOM)
    copied(tmp_path, HEALTHY)
    done = triage("classify", "cases", "--junit", "j.xml", "--sarif", "s.sarif", "--github")
    assert done.returncode == 10
    cases = ET.parse(tmp_path / "j.xml").getroot().findall(".//testcase")
    assert [[inner.tag for inner in case] for case in cases] == [["failure"], []]
    run = json.loads((tmp_path / "s.sarif").read_text())["runs"][0]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["graph-capture-oom"]
    assert len([line for line in done.stdout.splitlines() if line.startswith("::error ")]) == 1


def test_paths_for_github_start_at_its_checkout(
    triage: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(tmp_path, OOM)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path.parent))
    done = triage("classify", "cases", "--sarif", "s.sarif", "--github")
    (error,) = [line for line in done.stdout.splitlines() if line.startswith("::error ")]
    assert error.startswith(f"::error file={tmp_path.name}/cases/")
    (found,) = json.loads((tmp_path / "s.sarif").read_text())["runs"][0]["results"]
    uri = found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.startswith(f"{tmp_path.name}/cases/")


def test_a_runner_takes_no_line_of_a_log_for_a_command(triage: Run, tmp_path: Path) -> None:
    log = (min(CASES.glob(f"{OOM}*")) / "server.log").read_text()
    (tmp_path / "a.log").write_text(
        log.replace("torch.OutOfMemoryError: ", "torch.OutOfMemoryError: x\r::add-mask::y ")
    )
    done = triage("classify", "a.log", "--github")
    lines = done.stdout.splitlines()
    stop = re.fullmatch(r"::stop-commands::([0-9a-f]{24})", lines[0])
    assert stop is not None
    assert f"::{stop[1]}::" in lines
    assert all(
        line.startswith("::error ") or line.startswith("::notice ")
        for line in lines[lines.index(f"::{stop[1]}::") + 1 :]
    )


def test_reports_name_no_host_user_home_or_address(
    triage: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", "joanne")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    case = copied(tmp_path, OOM, cause="weight-oom")
    log = (case / "server.log").read_text()
    secret = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345ab"
    told = f"CUDA out of memory. joanne at 10.9.8.7 in /home/jo/x with {secret} tcp://gpu-7:1 "
    assert "CUDA out of memory. " in log
    (case / "server.log").write_text(log.replace("CUDA out of memory. ", told))
    texts = []
    for words in (["check", "cases"], ["classify", f"cases/{case.name}/server.log"]):
        done = triage(*words, "--junit", "j.xml", "--sarif", "s.sarif", "--github", "--json")
        annotations = [line for line in done.stderr.splitlines() if line.startswith("::")]
        texts += [(tmp_path / name).read_text() for name in ("j.xml", "s.sarif", "summary.md")]
        texts += ["\n".join(annotations), done.stdout if words[0] == "check" else ""]
    for text in filter(None, texts):
        assert not re.search(f"joanne|10\\.9\\.8\\.7|/home/jo/|{secret}|gpu-7", text), text
    assert all("/home/user/x" in text for text in texts[5:8])


def test_a_report_that_cannot_be_written_is_an_error(triage: Run, tmp_path: Path) -> None:
    copied(tmp_path, HEALTHY)
    (tmp_path / "file").write_text("")
    done = triage("check", "cases", "--junit", "file/j.xml", "--json")
    assert done.returncode == 4
    assert done.stderr.startswith("error: cannot write file/j.xml: ")


def test_clusters_of_a_folder_are_told_and_the_next_command_named(
    triage: Run, tmp_path: Path
) -> None:
    for name in ("unknown--wrapped", "healthy--"):
        copied(tmp_path, name)
    copied(tmp_path, "unknown--wrapped", "unknown--again")
    done = triage("cluster", "cases")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "3 logs: 2 without a cause, in 1 group"
    assert lines[-1] == "next: triage causes new --from cases/unknown--again/server.log"
    document = json.loads(triage("cluster", "cases", "--json").stdout)
    assert [len(group["members"]) for group in document["groups"]] == [2]
    assert document["next"][-1] == "cases/unknown--again/server.log"


def test_where_every_failure_has_a_cause_there_is_no_cluster(triage: Run, tmp_path: Path) -> None:
    copied(tmp_path, OOM)
    done = triage("cluster", "cases")
    assert (done.returncode, done.stdout) == (0, "1 log: 0 without a cause, in 0 groups\n")


@pytest.mark.skipif(os.name != "posix", reason="a terminal of its own")
def test_a_terminal_sees_how_far_the_check_is(tmp_path: Path) -> None:
    import pty
    import subprocess
    import sys

    copied(tmp_path, HEALTHY)
    main, side = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "triage", "check", "cases"],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=side, check=False, timeout=60,
        )  # fmt: skip
        shown = os.read(main, 4096)
    finally:
        os.close(main)
        os.close(side)
    assert done.stdout == b"1 case: 1 as expected\n"
    assert b"1/1 cases" in shown

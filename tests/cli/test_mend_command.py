"""`triage confirm --from-log` and `--largest` on the simulated engine, without a hand on the keyboard."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, is_an_error
from inside import inside

from triage.replay.landscape import Ending, write_landscape

pytestmark = pytest.mark.real


@pytest.fixture
def triage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    monkeypatch.chdir(tmp_path)
    return inside(capsys)


TOO_LONG = (
    "Warning: User-specified context_length (4096) is greater than the derived context_length"
    " (512). This may lead to incorrect model outputs or CUDA errors."
)
BOTH = "Cannot enable both --page-size and --chunked-prefill-size. Please choose one."
# Patience shrinks with the speed, and the processes of a busy machine do not.
FAST = ("--speed", "1000", "--patience", "10h")


def landscape(folder: Path, **more: Any) -> Path:
    """Two faults in series: a context that is too long, and behind it a pair of options."""
    path = folder / "l.yaml"
    starts = Ending(ends="starts")
    pair = Ending(
        ends="exception", phase="arg-validation", ranks=("main",), exception="ValueError",
        message=BOTH,
    )  # fmt: skip
    table = {
        frozenset(): starts,
        frozenset({"page-size"}): starts,
        frozenset({"chunked-prefill-size"}): starts,
        frozenset({"page-size", "chunked-prefill-size"}): pair,
    }
    write_landscape(path, table, seconds={"scheduler-init": 1})
    document = json.loads(path.read_text())
    document["model"] = {"kv_tokens": 4096, "context": 512}
    for flag in document["flags"]:
        if flag["flag"] in ("page-size", "chunked-prefill-size"):
            flag["kind"] = "int"
    document["items"] = {"page-size": 16, "chunked-prefill-size": 100}
    document["flags"].append({"flag": "context-length", "kind": "int"})
    document["limits"] = [
        {
            "flag": "context-length", "above": 512, "ends": "exception", "phase": "arg-validation",
            "ranks": ["main"], "exception": "ValueError", "message": TOO_LONG,
            "provenance": "recorded", "source": "a test",
        }
    ]  # fmt: skip
    path.write_text(json.dumps(document | more))
    return path


def engine(path: Path) -> list[str]:
    return [sys.executable, "-m", "triage.replay", "--landscape", str(path), *FAST[:2], "--"]


def test_two_faults_in_series_are_mended_from_the_log_alone(triage: Run, tmp_path: Path) -> None:
    play = landscape(tmp_path)
    flags = ("--context-length", "4096", "--page-size", "16", "--chunked-prefill-size", "100")
    failed = triage("run", "--session", "once", "--", *engine(play), "--model-path", "/m", *flags)
    assert failed.returncode == 10, failed.stderr
    done = triage("confirm", "--from-log", "once", "--session", "s", "--json")
    assert done.returncode == 0, (done.stdout, done.stderr)
    found = json.loads(done.stdout)
    assert found == json.loads((tmp_path / "s/mending.json").read_text())
    assert (found["works"], found["stop"], found["cause"]) == (
        True, "came-up", "context-length-over-derived",
    )  # fmt: skip
    assert [(a["fault"], a["works"]) for a in found["attempts"]][-1] == (2, True)
    causes = [a["cause"] for a in found["attempts"]]
    assert "args-mutually-exclusive" in causes
    last = found["attempts"][-1]["changes"]
    assert {"set": "context-length", "value": 512} in last or {"unset": "context-length"} in last
    assert {"unset": "page-size"} in last or {"unset": "chunked-prefill-size"} in last
    assert found["confirmation"]["confirmed"]
    stored = json.loads((tmp_path / "s/confirmation.json").read_text())
    assert stored["confirmed"]
    assert re.search(r"(?m)^-.*--context-length 4096", found["diff"])


def test_a_number_of_a_remedy_is_searched_by_halving(triage: Run, tmp_path: Path) -> None:
    """Graph capture has no memory above 0.78; the remedy begins at 0.88 and goes down."""
    limit = {
        "flag": "mem-fraction-static", "above": 0.78, "ends": "exception",
        "phase": "graph-capture", "exception": "torch.OutOfMemoryError",
        "message": "CUDA out of memory. Tried to allocate 1.17 GiB. GPU 0 has a total capacity of"
        " 139.81 GiB of which 819.06 MiB is free.",
        "provenance": "recorded", "source": "a test",
    }  # fmt: skip
    play = landscape(tmp_path)
    document = json.loads(play.read_text())
    document["flags"].append({"flag": "mem-fraction-static"})
    seconds = {"graph-capture": 1, "scheduler-init": 1}
    play.write_text(json.dumps(document | {"limits": [limit], "seconds": seconds}))
    flags = ("--mem-fraction-static", "0.92")
    failed = triage("run", "--session", "once", "--", *engine(play), "--model-path", "/m", *flags)
    assert failed.returncode == 10, failed.stdout
    done = triage("confirm", "--from-log", "once", "--session", "s", "--json")
    assert done.returncode == 0, (done.stdout, done.stderr)
    found = json.loads(done.stdout)
    tried = [a["changes"][0]["value"] for a in found["attempts"]]
    assert tried[0] == 0.88
    assert found["confirmation"]["config"]["flags"]["mem-fraction-static"] == 0.76
    assert len(tried) <= 6
    assert found["cause"] == "graph-capture-oom"


def test_a_budget_of_one_ends_honestly_without(triage: Run, tmp_path: Path) -> None:
    play = landscape(tmp_path)
    flags = ("--context-length", "4096", "--page-size", "16", "--chunked-prefill-size", "100")
    triage("run", "--session", "once", "--", *engine(play), "--model-path", "/m", *flags)
    done = triage("confirm", "--from-log", "once", "--launches", "1", "--session", "s")
    assert done.returncode == 12, done.stdout
    assert "no working configuration: the budget of 1 launches is spent" in done.stdout
    assert "works" not in done.stdout
    assert not json.loads((tmp_path / "s/mending.json").read_text())["works"]


def test_a_launch_is_mended_in_the_folder_in_which_it_was_typed(
    triage: Run, tmp_path: Path
) -> None:
    import os
    import subprocess

    landscape(tmp_path)
    words = [*engine(Path("l.yaml")), "--model-path", "/m", "--context-length", "4096"]
    assert triage("run", "--session", "once", "--", *words).returncode == 10
    (tmp_path / "elsewhere").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "triage", "confirm", "--from-log", str(tmp_path / "once"), "--json"],
        cwd=tmp_path / "elsewhere", capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["works"]


def test_what_no_launch_can_try_is_said(triage: Run, tmp_path: Path) -> None:
    play = landscape(tmp_path)
    document = json.loads(play.read_text())
    for entry in document["entries"]:
        entry.update(
            ends="exception", phase="weight-load", exception="SafetensorError", ranks=["all"],
            message="Error while deserializing header: incomplete metadata, file not fully covered",
        )  # fmt: skip
    play.write_text(json.dumps(document))
    triage("run", "--session", "once", "--", *engine(play), "--model-path", "/m")
    done = triage("confirm", "--from-log", "once/trials/001/server.log", "--session", "s")
    assert done.returncode == 12, (done.stdout, done.stderr)
    assert "no working configuration: every proposal that a launch can try was tried" in (
        " ".join(done.stdout.split())
    )
    assert json.loads((tmp_path / "s/mending.json").read_text())["attempts"] == []


def test_a_log_of_its_own_needs_the_command_in_a_file(triage: Run, tmp_path: Path) -> None:
    play = landscape(tmp_path)
    words = [*engine(play), "--model-path", "/m", "--context-length", "4096"]
    triage("run", "--session", "once", "--", *words)
    log = tmp_path / "server.log"
    log.write_bytes((tmp_path / "once/trials/001/server.log").read_bytes())
    is_an_error(triage("confirm", "--from-log", log), 2, r"does not tell the command")
    command = "python -m sglang.launch_server --model-path /m --context-length 4096 --port 30000\n"
    (tmp_path / "cmd.sh").write_text(command)
    done = triage("confirm", "--from-log", log, "--command", "cmd.sh", "--landscape", play, *FAST)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "python -m sglang.launch_server --model-path /m" in done.stdout
    assert "4096" not in done.stdout.rpartition("\n\n")[2]
    dry = triage(
        "confirm", "--from-log", log, "--command", "cmd.sh", "--landscape", play, "--dry-run"
    )
    assert "context-length" in dry.stdout


def test_the_largest_context_is_found_within_log2_launches(triage: Run, tmp_path: Path) -> None:
    play = landscape(tmp_path)
    (tmp_path / "cmd.sh").write_text("python -m sglang.launch_server --model-path /m\n")
    done = triage(
        "confirm", "cmd.sh", "--largest", "context-length=64..2048:64", "--landscape", play, *FAST,
        "--session", "s", "--json",
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout, done.stderr)
    found = json.loads(done.stdout)
    assert found["say"].startswith(
        "--context-length 512 is the largest that came up and passed; 576 did not"
    )
    assert found["launches"] <= 6, "log2 of 32 values"
    assert "at most 6 launches for 32 values" in done.stderr
    assert found["confirmation"]["config"]["flags"]["context-length"] == 512
    assert found["attempts"][-1]["count"]["starts"] == 1


def test_a_number_of_which_none_works(triage: Run, tmp_path: Path) -> None:
    play = landscape(tmp_path)
    (tmp_path / "cmd.sh").write_text("python -m sglang.launch_server --model-path /m\n")
    done = triage(
        "confirm", "cmd.sh", "--largest", "context-length=600..700:50", "--landscape", play, *FAST
    )
    assert done.returncode == 12
    assert "not even --context-length 600 came up" in done.stdout


FAULT = """
import os, sys
if sys.orig_argv[1:3] == ["-m", "triage.replay"]:
    count = {count!r}
    with open(count, "a") as file:
        file.write("x")
    if os.path.getsize(count) in {fails!r}:
        sys.stderr.write("simulated | [2026-01-01 00:00:00 TP0] Scheduler hit an exception: "
            "Traceback (most recent call last):\\n"
            'simulated |   File "/opt/venv/lib/python3.11/site-packages/sglang/srt/managers/scheduler.py", line 1, in init\\n'
            "simulated | RuntimeError: {message}\\n")
        sys.stderr.flush()
        os._exit(1)
"""


def planted(folder: Path, fails: tuple[int, ...], message: str) -> None:
    """A fault that the n-th start of the engine has, planted into its interpreter."""
    (folder / "faults").mkdir()
    (folder / "faults/sitecustomize.py").write_text(
        FAULT.format(count=str(folder / "count"), fails=fails, message=message)
    )


def test_a_flaky_start_is_reported_with_its_counts(
    triage: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = landscape(tmp_path)
    planted(tmp_path, (2,), "something happened to this start only")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "faults"))
    (tmp_path / "cmd.sh").write_text("python -m sglang.launch_server --model-path /m\n")
    done = triage(
        "confirm", "cmd.sh", "--landscape", play, *FAST, "--repeat", "3", "--session", "s"
    )
    assert done.returncode == 13, (done.stdout, done.stderr)
    said = " ".join(done.stdout.split())
    assert said.startswith("simulated: flaky: 2 of 3 starts came up; start 2: the launch failed")
    document = json.loads((tmp_path / "s/confirmation.json").read_text())
    assert (document["flaky"], document["count"]) == (True, {"up": 2, "starts": 3})


def test_a_failure_of_the_moment_is_first_answered_by_the_same_command(
    triage: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log's cause is transient; started again it comes up: no flag is changed."""
    play = landscape(tmp_path)
    message = "CUDA error: CUDA-capable device(s) is/are busy or unavailable"
    planted(tmp_path, (1, 4), message)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "faults"))
    failed = triage("run", "--session", "once", "--", *engine(play), "--model-path", "/m")
    assert failed.returncode == 10, failed.stdout
    assert "device-busy" in failed.stdout
    done = triage("confirm", "--from-log", "once", "--session", "s", "--json")
    assert done.returncode == 13, (done.stdout, done.stderr)
    found = json.loads(done.stdout)
    assert (found["stop"], found["works"]) == ("flaky", False)
    (attempt,) = found["attempts"]
    assert (attempt["changes"], attempt["count"]) == ([], {"up": 2, "starts": 3})
    assert attempt["cause"] == "device-busy"
    again = triage("confirm", "--from-log", "once", "--session", "t", "--json")
    assert again.returncode == 0, (again.stdout, again.stderr)
    found = json.loads(again.stdout)
    assert found["attempts"][0]["count"] == {"up": 3, "starts": 3}
    assert found["say"].startswith("3/3 starts of the same command came up")


def test_bad_words(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "cmd.sh").write_text("python -m sglang.launch_server --model-path /m\n")
    is_an_error(triage("confirm", "--largest", "context-length=1..2"), 2, r"needs the command")
    is_an_error(triage("confirm", "cmd.sh", "--largest", "context-length"), 2, r"it is written")
    is_an_error(triage("confirm", "cmd.sh", "--largest", "tp-size=8..1"), 2, r"is not below")
    is_an_error(
        triage("confirm", "cmd.sh", "--largest", "enable-metrics=1..2"), 2, r"takes no number"
    )
    is_an_error(triage("confirm", "cmd.sh", "--from-log", "x"), 2, r"takes the command with")
    (tmp_path / "letter.txt").write_text("Dear all,\n")
    is_an_error(triage("confirm", "--from-log", "letter.txt"), 3, r"is of no launch")
    is_an_error(triage("confirm", "--from-log", "nowhere"), 4, r"cannot read nowhere")

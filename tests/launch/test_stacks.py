"""Where the processes of a failing launch stood: each way to read a stack, and what it costs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from launch_bench import Bench, wait_until

from triage.core.launch import Crashed, Patience
from triage.launch import stacks
from triage.launch.stacks import Dumps, dump

pytestmark = pytest.mark.real
SLEEPER = "import time\ndef waiting_here():\n    time.sleep(100)\nwaiting_here()\n"


@pytest.fixture
def sleeper() -> Iterator[int]:
    child = subprocess.Popen([sys.executable, "-c", SLEEPER])
    wait_until(lambda: "nanosleep" in Path(f"/proc/{child.pid}/wchan").read_text())
    yield child.pid
    child.kill()
    child.wait()


def readers(monkeypatch: pytest.MonkeyPatch, *ways: tuple[str, tuple[str, ...]]) -> None:
    monkeypatch.setattr(stacks, "_readers", lambda: ways)


def test_the_live_processes_of_a_crash_are_read_before_they_are_ended(bench: Bench) -> None:
    capture = bench.launch("rank:TP0", "sleep:0.3", "say:FATAL", "hang")
    assert capture.outcome == Crashed(exit_code=None, fatal_line=1)
    assert capture.stacks == str(bench.folder / "stacks.txt")
    text = Path(capture.stacks).read_text()
    assert text.count("== process ") == 2
    assert "sglang::scheduler_TP0" in text
    assert "hang (" in text


def test_the_stacks_do_not_hold_up_the_end(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    readers(monkeypatch, ("slow", ("sleep", "60")))
    capture = bench.launch(
        "say:FATAL", "hang", patience=Patience(silent_s=20, total_s=30, settle_s=1.0)
    )
    assert isinstance(capture.outcome, Crashed)
    assert capture.seconds < 20
    assert "slow: nothing for" in Path(capture.stacks).read_text()


def test_a_server_that_refuses_its_first_question_is_read(bench: Bench) -> None:
    capture = bench.launch("answer:500,no", "say:READY", "hang")
    assert isinstance(capture.outcome, Crashed)
    assert capture.outcome.reason
    assert "hang (" in Path(capture.stacks).read_text()


def test_a_launch_that_ended_by_itself_has_no_stacks(bench: Bench) -> None:
    assert bench.launch("exit:1").stacks == ""
    assert not (bench.folder / "stacks.txt").exists()


def test_secrets_in_a_command_line_are_hidden_in_the_stacks(bench: Bench) -> None:
    secret = "hf_" + "PlantedSecretOfTheTest"
    capture = bench.launch(
        f"say:{'x'}", "hang", f"say:--api-key={secret}", patience=Patience(silent_s=0.8, total_s=20)
    )
    assert secret not in Path(capture.stacks).read_text()


def test_a_stopped_process_is_read_as_it_stands(sleeper: int) -> None:
    os.kill(sleeper, signal.SIGSTOP)
    wait_until(lambda: " T " in Path(f"/proc/{sleeper}/stat").read_text())
    text = dump([sleeper])
    assert "tried py-spy: left out, as the process is in state T" in text
    assert "waiting_here (" in text


def test_what_was_tried_is_written_down_where_nothing_works(
    sleeper: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers(
        monkeypatch,
        ("py-spy", ("sh", "-c", "echo Permission Denied >&2; exit 1")),
        ("py-spy --nonblocking", ("no-such-program",)),
        ("pystack --no-block", ("sh", "-c", "exit 3")),
    )
    text = dump([sleeper])
    assert "no stack: py-spy: Permission Denied; py-spy --nonblocking: " in text
    assert "pystack --no-block: exit 3" in text
    assert "in the kernel:" in text or os.geteuid() != 0


def test_pystack_reads_where_py_spy_fails(sleeper: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pystack")
    *_, last = stacks._readers()
    assert last[0] == "pystack --no-block"
    readers(monkeypatch, ("py-spy", ("false",)), last)
    text = dump([sleeper])
    assert "tried py-spy: exit 1\n" in text
    assert "in waiting_here" in text


def test_without_any_reader_that_is_said(sleeper: int, monkeypatch: pytest.MonkeyPatch) -> None:
    readers(monkeypatch)
    assert "no stack: py-spy is not installed" in dump([sleeper])


def test_all_of_a_tree_is_read_within_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    readers(monkeypatch, ("py-spy", ("sleep", "60")), ("py-spy --nonblocking", ("sleep", "60")))
    children = [subprocess.Popen(["sleep", "60"]) for _ in range(20)]
    began = time.monotonic()
    text = dump([child.pid for child in children], within_s=1.0)
    for child in children:
        child.kill()
        child.wait()
    assert time.monotonic() - began < 20
    assert text.count("== process ") == 20
    assert "no time was left" in text


def test_a_process_that_has_ended_is_no_error() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert dump([child.pid]) == f"== process {child.pid}: ended\n"
    child.wait()
    assert dump([child.pid]) == f"== process {child.pid}: ended\n"


def test_reading_is_begun_once() -> None:
    asked: list[int] = []

    def read(_: float) -> str:
        asked.append(1)
        return ""

    dumps = Dumps(read)
    dumps.begin(1.0)
    dumps.begin(1.0)
    assert dumps.text(1.0) == ""
    assert asked == [1]

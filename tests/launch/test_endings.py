"""How a launch that does not come up is judged, and what it leaves on disk."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path
from typing import BinaryIO

import pytest
from launch_bench import PATIENT, Bench

from triage.core.launch import Crashed, Hung, Patience
from triage.errors import HostError, UsageError
from triage.launch import capture

pytestmark = pytest.mark.real


def test_an_exit_code_is_told(bench: Bench) -> None:
    capture = bench.launch("say:going", "exit:3")
    assert capture.outcome == Crashed(exit_code=3)
    told = json.loads((bench.folder / "exit.json").read_text())
    assert told["schema"] == "triage.exit/1"
    assert (told["how"], told["exit_code"], told["stuck"]) == ("crashed", 3, [])
    assert told["pids"] == list(capture.pids)


def test_a_signal_is_a_negative_exit_code(bench: Bench) -> None:
    assert bench.launch(f"signal:{signal.SIGSEGV}").outcome == Crashed(exit_code=-11)
    assert bench.launch(f"signal:{signal.SIGKILL}").outcome == Crashed(exit_code=-9)


def test_a_program_that_ends_at_once_is_no_error_of_ours(bench: Bench) -> None:
    assert bench.launch(argv=("true",)).outcome == Crashed(exit_code=0)


def test_the_fatal_line_ends_the_launch_before_the_server_ends_itself(bench: Bench) -> None:
    capture = bench.launch("say:one", "say:FATAL", "sleep:0.2", "say:its traceback", "hang")
    assert capture.outcome == Crashed(exit_code=None, fatal_line=2)
    assert bench.log() == "one\nFATAL\nits traceback\n"
    assert capture.seconds < 15, "it was not waited for until its patience ended"


def test_lines_after_the_fatal_one_are_not_waited_for_forever(bench: Bench) -> None:
    capture = bench.launch("say:FATAL", "chatter")
    assert capture.outcome == Crashed(exit_code=None, fatal_line=1)
    assert 2 <= capture.seconds < 15


def test_the_settle_window_ends_early_once_every_live_rank_has_spoken(bench: Bench) -> None:
    bench.watcher.ranks = frozenset({"TP0", "TP1"})
    patience = Patience(silent_s=40, total_s=60, settle_s=25)
    capture = bench.launch(
        "say:FATAL", "say:TP0 fails", "sleep:0.7", "say:TP1 too", "hang", patience=patience
    )
    assert bench.log().endswith("TP1 too\n"), "the other rank was waited for"
    assert "ending it: every live rank has spoken" in bench.events
    assert capture.seconds < 20


def test_a_rank_that_never_speaks_is_waited_for_as_long_as_the_window(bench: Bench) -> None:
    bench.watcher.ranks = frozenset({"TP0", "TP1"})
    patience = Patience(silent_s=20, total_s=30, settle_s=1.0)
    bench.launch("say:FATAL", "say:TP0 fails", "hang", patience=patience)
    assert "ending it 1 s after that line" in bench.events


def test_a_rank_whose_process_is_gone_is_not_waited_for(bench: Bench) -> None:
    bench.watcher.ranks = frozenset({"TP0", "TP1"})
    titled = "titled:sglang::scheduler_TP0"
    bench.launch(titled, "say:FATAL", "say:TP0 fails", "hang")
    assert "ending it: every live rank has spoken" in bench.events


def test_a_server_that_ends_right_after_its_fatal_line_has_its_exit_code(bench: Bench) -> None:
    assert bench.launch("say:FATAL", "exit:4").outcome == Crashed(exit_code=4)


def test_a_silent_server_is_hung_and_its_stacks_are_read(bench: Bench) -> None:
    patience = Patience(silent_s=3.0, total_s=40)
    capture = bench.launch("say:phase weight-load", "hang", patience=patience)
    assert isinstance(capture.outcome, Hung)
    assert capture.outcome.limit == "silent"
    assert 3.0 <= capture.outcome.silent_s < 15
    assert capture.phase == "weight-load"
    assert capture.stacks == str(bench.folder / "stacks.txt")
    text = Path(capture.stacks).read_text()
    assert f"== process {capture.pids[0]} " in text
    assert "hang (" in text  # the Python function that it waits in


def test_a_busy_processor_is_no_sign_of_life_and_all_processes_are_read(bench: Bench) -> None:
    patience = Patience(silent_s=60, total_s=60, phases={"graph-capture": 1.5})
    capture = bench.launch("child", "say:phase graph-capture", "spin", patience=patience)
    assert isinstance(capture.outcome, Hung)
    assert capture.outcome.limit == "graph-capture"
    text = Path(capture.stacks).read_text()
    assert "spin_in_a_loop (" in text
    assert text.count("== process ") == 2


def test_the_stack_of_a_stopped_process_is_read_too(bench: Bench) -> None:
    patience = Patience(silent_s=3.0, total_s=40)
    capture = bench.launch(f"signal:{signal.SIGSTOP}", patience=patience)
    text = Path(capture.stacks).read_text()
    assert "state T" in text
    assert "fake_engine.py" in text.partition("\n")[2].partition("\n")[2]


def test_a_talking_server_runs_out_of_total_patience(bench: Bench) -> None:
    capture = bench.launch("chatter", patience=Patience(silent_s=20, total_s=4.0))
    assert isinstance(capture.outcome, Hung)
    assert capture.outcome.limit == "total"
    assert capture.outcome.silent_s < 3.0


def test_the_log_holds_every_byte_as_it_was_written(bench: Bench) -> None:
    raw = b"50%\r100%\n\xff\x00 no text\nno end of line"
    read = bench.folder.with_name("read")
    bench.watcher.hook = lambda _: read.touch()
    capture = bench.launch(
        f"raw:{raw.hex()}", f"wait_for:{read}", "sleep:0.3", "err:to stderr", "exit:1"
    )
    assert Path(capture.log).read_bytes() == raw + b"to stderr\n"
    assert bench.watcher.seen == raw + b"to stderr\n"
    arrivals = [
        json.loads(line) for line in (bench.folder / "arrivals.jsonl").read_text().splitlines()
    ]
    assert [offset for offset, _ in arrivals] == [0, len(raw)]
    assert 0.3 <= arrivals[1][1] - arrivals[0][1] + 0.01 < 10


def test_much_output_is_not_lost(bench: Bench) -> None:
    capture = bench.launch("flood:4", "exit:1")
    assert Path(capture.log).stat().st_size == 4 << 20


def test_the_server_gets_its_environment_and_a_short_tmpdir(bench: Bench) -> None:
    capture = bench.launch(
        "env:TMPDIR", "env:GREETING", "touch:socket", "exit:1", env=(("GREETING", "good day"),)
    )
    tmpdir = bench.log().splitlines()[0].partition("=")[2]
    assert "GREETING=good day" in bench.log()
    assert len(tmpdir) < 70
    assert not Path(tmpdir).exists()
    assert capture.leftovers == (f"{tmpdir}/socket",)


def test_a_variable_of_ours_can_be_kept_from_the_server(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KEPT", "GONE", "SET"):
        monkeypatch.setenv(name, "shell")
    bench.launch(
        "env:KEPT",
        "env:GONE",
        "env:SET",
        "exit:1",
        env=(("SET", "spec"),),
        unset_env=("GONE", "SET"),
    )
    assert bench.log() == "KEPT=shell\nGONE=None\nSET=spec\n"


def test_a_program_that_is_not_there(bench: Bench) -> None:
    with pytest.raises(UsageError) as caught:
        bench.launch(argv=("no-such-program", "--port", "1"))
    assert caught.value.message == "The program 'no-such-program' was not found."
    assert caught.value.hint == "command -v no-such-program"


def test_a_file_that_is_not_executable(bench: Bench, tmp_path: Path) -> None:
    script = tmp_path / "serve.sh"
    script.write_text("echo hello\n")
    with pytest.raises(UsageError, match="is not executable"):
        bench.launch(argv=(str(script),))
    script.chmod(0o755)
    with pytest.raises(UsageError, match="is no program"):
        bench.launch(argv=(str(script),))


def test_a_folder_to_start_in_that_is_not_there(bench: Bench) -> None:
    with pytest.raises(UsageError) as caught:
        bench.launch("exit:0", cwd="/no/such/folder")
    assert "/no/such/folder" in caught.value.message
    assert caught.value.hint == "mkdir /no/such/folder"


def test_a_busy_port_names_who_holds_it(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", bench.port)):
        with pytest.raises(HostError) as caught:
            bench.launch("exit:0")
        assert f"Port {bench.port} is already taken by process {os.getpid()} " in str(caught.value)
        assert caught.value.hint == f"ss -ltnp 'sport = :{bench.port}'"


def test_a_folder_that_cannot_be_written(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    bench.folder = tmp_path / "file" / "launch"
    with pytest.raises(HostError, match="cannot be written"):
        bench.launch("exit:0")


def test_a_disk_that_is_full_ends_the_launch(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    real = capture.create

    def create(path: Path) -> BinaryIO:
        return real(Path("/dev/full") if path.name == "server.log" else path)

    monkeypatch.setattr(capture, "create", create)
    with pytest.raises(HostError) as caught:
        bench.launch("daemon:full", "say:hello", "hang", patience=PATIENT)
    assert "No space left on device" in caught.value.message
    assert caught.value.hint == f"df -h {bench.folder}"


@pytest.mark.parametrize("name", ["server.log", "arrivals.jsonl", "exit.json", "stacks.txt"])
def test_nothing_is_written_through_a_link(bench: Bench, tmp_path: Path, name: str) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    bench.folder.mkdir()
    (bench.folder / name).symlink_to(precious)
    with pytest.raises(HostError) as caught:
        bench.launch("say:hello", "hang", patience=Patience(silent_s=0.5, total_s=20))
    assert f"{bench.folder / name} is a link" in caught.value.message
    assert caught.value.hint == f"rm {bench.folder / name}"
    assert precious.read_text() == "mine"


def test_a_disk_that_fills_up_ends_the_launch(bench: Bench, small_folder: Path) -> None:
    bench.folder = small_folder
    with pytest.raises(HostError, match=r"No space left on device|File too large"):
        bench.launch("flood:4", "hang")
    assert 0 < (small_folder / "server.log").stat().st_size <= 1 << 20

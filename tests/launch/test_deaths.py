"""How each process of a launch ended is known, whoever collected it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from launch_bench import Bench, wait_until

from triage.core.launch import Crashed, Exit, Ready
from triage.launch import deaths
from triage.launch.deaths import Death, Deaths, process_name
from triage.launch.exits import MOST, exits_of
from triage.launch.jobscript import node_program
from triage.launch.target import Remains

pytestmark = pytest.mark.real


def test_a_child_that_its_own_parent_collected_is_told_with_its_signal(bench: Bench) -> None:
    capture = bench.launch("rank:TP0", "rank:TP3,9,0.6", "sleep:4", "exit:1")
    assert capture.outcome == Crashed(exit_code=1)
    told = {one.rank: one for one in capture.exits if one.rank}
    assert (told["TP3"].exit_code, told["TP3"].by_us) == (-signal.SIGKILL, False)
    assert told["TP3"].name == "sglang::scheduler_TP3"
    main = next(one for one in capture.exits if one.exit_code == 1)
    assert main.pid == capture.pids[0]
    assert main.seconds is not None
    assert told["TP3"].seconds is not None
    assert 0.5 < told["TP3"].seconds < main.seconds, "it died first"
    assert told["TP0"].by_us, "we ended it"
    assert {one.pid for one in capture.exits} == set(capture.pids)


def test_every_end_is_in_the_document(bench: Bench) -> None:
    bench.launch("rank:TP1,11,0.3", "sleep:3", "exit:2")
    stored = json.loads((bench.folder / "exit.json").read_text())
    (rank,) = (one for one in stored["processes"] if one["rank"] == "TP1")
    assert (rank["exit_code"], rank["by_us"]) == (-signal.SIGSEGV, False)
    assert stored["unseen"] == ""


def test_what_triage_ended_is_told_as_such(bench: Bench) -> None:
    capture = bench.launch("rank:TP0", "serve", "say:READY", "hang")
    assert isinstance(capture.outcome, Ready)
    ends = {one.rank: (one.exit_code, one.by_us) for one in capture.exits}
    assert ends["TP0"] == (-signal.SIGKILL, True)


def test_an_orphan_that_ends_is_collected_by_the_guard(bench: Bench) -> None:
    code = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    if os.fork(): os._exit(0)\n"
        "    time.sleep(0.5); os._exit(41)\n"
        "time.sleep(1.5); os._exit(3)\n"
    )
    capture = bench.launch(argv=(sys.executable, "-c", code))
    codes = [one.exit_code for one in capture.exits if not one.by_us]
    assert 41 in codes
    assert codes[-1] == 3


def end_of_grandchild(watch: Deaths) -> Death:
    code = (
        "import subprocess, sys, time\n"
        "made = subprocess.Popen(['sh', '-c', 'sleep 0.2; exit 7'])\n"
        "print(made.pid, flush=True); made.wait(); print('collected', flush=True); time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    try:
        watch.watch(int(parent.stdout.readline()))
        assert parent.stdout.readline() == b"collected\n"
        time.sleep(0.05)
        (death,) = watch.collect(last=True)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
    return death


def test_the_code_of_a_process_that_somebody_else_collected() -> None:
    watch = Deaths()
    death = end_of_grandchild(watch)
    watch.close()
    assert death.code in (7, None)  # None before Linux 6.15
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    if release >= (6, 15):
        assert death.code == 7


def test_an_old_kernel_tells_of_zombies_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deaths, "_told", lambda _: None)
    watch = Deaths()
    assert end_of_grandchild(watch).code is None, "it was collected before anybody looked"
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(0.2); raise SystemExit(5)"]
    )
    watch.watch(child.pid)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert [(one.pid, one.code) for one in watch.collect()] == [(child.pid, 5)]
    child.wait()
    watch.close()


def test_without_descriptors_of_processes_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    watch = Deaths()
    watch.watch(os.getpid())
    assert watch.collect(last=True) == []
    (death,) = watch.reaped(os.getpid(), 3)
    assert (death.code, death.ours) == (3, False)
    assert watch.reaped(os.getpid(), 3) == [], "once is enough"
    watch.close()


def test_what_ends_while_we_end_it_is_ours() -> None:
    watch = Deaths()
    child = subprocess.Popen(["sleep", "60"])
    wait_until(lambda: process_name(child.pid) == "sleep")
    watch.watch(child.pid)
    watch.ending = True
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    (death,) = watch.collect()
    assert (death.code, death.ours, death.name) == (-9, True, "sleep")
    child.wait()
    watch.close()


def test_a_name_holds_no_word_of_the_command_line_but_a_module() -> None:
    secret = "hf_" + "a1" * 17
    child = subprocess.Popen(
        [sys.executable, "-m", "http.server", "--bind", secret], stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: "http.server" in process_name(child.pid))
        assert secret not in process_name(child.pid)
    finally:
        child.kill()
        child.wait()
    assert process_name(child.pid) == ""


def test_a_thousand_compilers_do_not_fill_the_record() -> None:
    many = tuple(Death(pid, 0, 1.0, "cicc", False) for pid in range(1, 1001))
    died = Death(2000, -9, 2.0, "sglang::scheduler_TP1", False)
    found = exits_of(Remains((*range(1, 1001), 2000), (), deaths=(*many, died)), began=0.0)
    assert len(found) <= MOST
    assert (
        Exit(pid=2000, name="sglang::scheduler_TP1", rank="TP1", exit_code=-9, seconds=2.0) in found
    )


def test_a_node_without_triage_tells_the_same(tmp_path: Path) -> None:
    told = tmp_path / "exits-0"
    server = (
        "import subprocess, sys, time\n"
        "made = subprocess.Popen(['sglang::scheduler_TP3', '-c', 'import os, time;"
        " time.sleep(1.3); os.kill(os.getpid(), 9)'], executable=sys.executable)\n"
        "made.wait(); sys.exit(5)\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-I", "-c", node_program(), str(told), sys.executable, "-c", server],
        check=False,
    )
    assert done.returncode == 5
    ends = [line.split(" ") for line in told.read_text().splitlines()]
    assert [(words[1], words[3]) for words in ends] == [("-9", "0"), ("5", "0")]
    assert ends[0][4] == "sglang::scheduler_TP3"
    assert abs(float(ends[0][2]) - time.time()) < 60


def test_a_node_passes_a_signal_on_without_a_core_file_of_its_own(tmp_path: Path) -> None:
    resource = (
        "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, resource.RLIM_INFINITY))"
    )
    server = f"{resource}; import os; os.kill(os.getpid(), 11)"
    done = subprocess.run(
        ["bash", "-c", 'ulimit -S -c unlimited 2>/dev/null; exec "$@"', "-", sys.executable, "-S",
         "-I", "-c", node_program(), str(tmp_path / "exits-0"), sys.executable, "-c", server],
        check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == -signal.SIGSEGV
    assert [path.name for path in tmp_path.iterdir()] == ["exits-0"]

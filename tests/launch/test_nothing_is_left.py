"""No process, shared-memory file or folder of a launch outlives it, whoever is killed."""

from __future__ import annotations

import json
import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from launch_bench import ENGINE, Bench, alive_below, alive_with, wait_until

from triage.core.launch import Crashed, Interrupted, Ready
from triage.launch import Server, tree

pytestmark = pytest.mark.real
SHM = Path("/dev/shm")
TREE = ("stubborn", "child", "daemon:{0}", "daemon:{0}", "serve")

# A program that launches as triage does: `stand_in.py FOLDER PORT WORD...`.
STAND_IN = """
import sys
from pathlib import Path
from triage.core.launch import LaunchSpec
from triage.launch import launch

class Deaf:
    phase, ready_line, fatal_line = "unknown", 0, 0
    def feed(self, raw): pass
    def unheard(self): return frozenset()

folder, engine, port, *words = sys.argv[1:]
launch(LaunchSpec(argv=(sys.executable, engine, port, *words), port=int(port)), Path(folder), Deaf())
"""


@pytest.fixture
def name(tmp_path: Path) -> Iterator[str]:
    """The name of a shared-memory file of this test."""
    name = f"triage-test-{os.getpid()}-{time.monotonic_ns()}"
    yield name
    (SHM / name).unlink(missing_ok=True)


def words(token: object) -> list[str]:
    return [word.format(token) for word in TREE]


def test_daemons_that_ignore_sigterm_end_with_the_server(bench: Bench, tmp_path: Path) -> None:
    capture = bench.launch(*words(tmp_path), "exit:7")
    assert capture.outcome == Crashed(exit_code=7)
    assert alive_with(str(tmp_path)) == []
    assert 4 <= len(capture.pids) <= 6  # those in between that end at once may be seen, too


def test_daemons_end_with_a_ready_server(bench: Bench, tmp_path: Path) -> None:
    capture = bench.launch(*words(tmp_path), "say:READY", "hang", stop_grace_s=0.2)
    assert isinstance(capture.outcome, Ready)
    assert alive_with(str(tmp_path)) == []


def test_a_shared_memory_file_is_removed_and_named(bench: Bench, name: str) -> None:
    capture = bench.launch(f"shm:{name}", "sleep:1.5", "exit:1")
    assert capture.leftovers == (f"/dev/shm/{name}",)
    assert not (SHM / name).exists()


def test_a_semaphore_is_found_although_it_was_renamed(bench: Bench) -> None:
    for _ in range(5):  # one that nobody maps, the guard of a launch beside this may remove first
        capture = bench.launch("semaphore", "sleep:0.5", f"signal:{signal.SIGKILL}")
        path = bench.log().split()[1]
        assert not Path(path).exists()
        if path in capture.leftovers:
            return
    pytest.fail("it was never told")


def test_a_semaphore_is_found_although_its_process_died_between_two_looks(bench: Bench) -> None:
    for _ in range(3):
        bench.launch("semaphore", f"signal:{signal.SIGKILL}")
        assert not Path(bench.log().split()[1]).exists()


def test_a_semaphore_that_somebody_else_uses_stays(bench: Bench) -> None:
    code = (
        "import multiprocessing\nlock = multiprocessing.get_context('spawn').Semaphore()\n"
        "print(lock._semlock.name.lstrip('/'), flush=True)\ninput()"
    )
    others: list[subprocess.Popen[str]] = []

    def start(raw: bytes) -> None:
        if b"UP" in raw:
            others.append(
                subprocess.Popen(
                    [sys.executable, "-c", code],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )

    bench.watcher.hook = start
    capture = bench.launch("say:UP", "sleep:1", "exit:1")
    (other,) = others
    assert other.stdout is not None
    path = Path(f"/dev/shm/sem.{other.stdout.readline().strip()}")
    assert capture.leftovers == ()
    assert path.exists()
    other.communicate("\n", timeout=10)
    wait_until(lambda: not path.exists())


def test_a_shared_memory_file_that_was_there_before_stays(bench: Bench, name: str) -> None:
    (SHM / name).write_bytes(b"x" * 4096)
    capture = bench.launch(f"shm:{name}", "sleep:1.5", "exit:1")  # longer than between two looks
    assert capture.leftovers == ()
    assert (SHM / name).read_bytes() == b"x" * 4096


def test_a_file_of_somebody_else_that_appears_meanwhile_stays(bench: Bench, name: str) -> None:
    bench.watcher.hook = lambda _: (SHM / name).touch()
    capture = bench.launch("say:UP", "sleep:0.5", "exit:1")
    assert capture.leftovers == ()
    assert (SHM / name).exists()


def test_a_file_that_another_process_uses_stays(bench: Bench, name: str) -> None:
    held: list[mmap.mmap] = []

    def share(raw: bytes) -> None:
        if b"UP" in raw:
            with (SHM / name).open("r+b") as file:
                held.append(mmap.mmap(file.fileno(), 4096))

    bench.watcher.hook = share
    capture = bench.launch(f"shm:{name}", "say:UP", "sleep:0.6", "exit:1")
    held[0].close()
    assert capture.leftovers == ()
    assert (SHM / name).exists()


def test_kill_9_of_triage_leaves_nothing(bench: Bench, tmp_path: Path, name: str) -> None:
    command = [sys.executable, "-c", STAND_IN, str(bench.folder), ENGINE, str(bench.port)]
    command += [*words(tmp_path), f"shm:{name}", "touch:x", "env:TMPDIR", "say:UP", "hang"]
    with subprocess.Popen(command) as stand_in:
        log = bench.folder / "server.log"
        wait_until(lambda: log.exists() and "UP" in log.read_text())
        time.sleep(0.3)
        of_the_launch = alive_below(stand_in.pid)
        assert len(of_the_launch) == 5  # guard, main, child, two daemons
        stand_in.kill()
        wait_until(lambda: not any(map(_lives, of_the_launch)))
    assert alive_with(str(tmp_path)) == []
    wait_until(lambda: not (SHM / name).exists())
    tmpdir = next(line for line in bench.log().splitlines() if line.startswith("TMPDIR="))
    wait_until(lambda: not Path(tmpdir.partition("=")[2]).exists())


def _lives(before: tree.Proc) -> bool:
    now = tree.look(before.pid)
    return now is not None and now.alive and now.start == before.start


def test_kill_9_of_triage_is_noticed_although_a_fork_of_it_lives_on(
    bench: Bench, tmp_path: Path
) -> None:
    fork = "import os, time\n" + STAND_IN.replace(
        "def feed(self, raw): pass",
        "def feed(self, raw):\n"
        "        if b'UP' in raw and os.fork() == 0: time.sleep(60), os._exit(0)",
    )
    command = [sys.executable, "-c", fork, str(bench.folder), ENGINE, str(bench.port)]
    with subprocess.Popen([*command, *words(tmp_path), "say:UP", "hang"]) as stand_in:
        log = bench.folder / "server.log"
        wait_until(lambda: log.exists() and "UP" in log.read_text())
        time.sleep(0.3)
        below = alive_below(stand_in.pid)
        forks = [proc for proc in below if proc.session == os.getsid(0)]
        of_the_launch = [proc for proc in below if proc not in forks]
        assert (len(forks), len(of_the_launch)) == (1, 5)
        stand_in.kill()
        wait_until(lambda: not any(map(_lives, of_the_launch)))
        assert _lives(forks[0])
        os.kill(forks[0].pid, signal.SIGKILL)
    wait_until(lambda: not _lives(forks[0]))


def test_kill_9_of_the_guard_leaves_nothing(bench: Bench, tmp_path: Path, name: str) -> None:
    def kill_the_guard(server: Server) -> None:
        wait_until(lambda: len(server.pids()) == 4)  # also the daemons are known
        main = tree.look(server.pids()[0])
        assert main is not None
        os.kill(main.parent, signal.SIGKILL)
        while True:
            server.generate("on", 1)

    capture = bench.launch(
        *words(tmp_path), f"shm:{name}", "touch:x", "say:READY", "hang", while_ready=kill_the_guard
    )
    assert capture.outcome == Interrupted(by="the guard process was killed")
    assert alive_with(str(tmp_path)) == []
    assert f"/dev/shm/{name}" in capture.leftovers
    assert len(capture.leftovers) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_is_raised_once_everything_is_ended(
    bench: Bench, tmp_path: Path, number: signal.Signals
) -> None:
    def interrupt(raw: bytes) -> None:
        if b"UP" in raw:
            os.kill(os.getpid(), number)

    bench.watcher.hook = interrupt
    with pytest.raises(KeyboardInterrupt):
        bench.launch(*words(tmp_path), "say:UP", "hang")
    assert alive_with(str(tmp_path)) == []
    assert json.loads((bench.folder / "exit.json").read_text())["how"] == "interrupted"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_ctrl_c_while_the_caller_works_ends_everything(bench: Bench, tmp_path: Path) -> None:
    def confirm(server: Server) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            server.generate("on", 1)

    with pytest.raises(KeyboardInterrupt):
        bench.launch(*words(tmp_path), "say:READY", "hang", while_ready=confirm)
    assert alive_with(str(tmp_path)) == []

"""A launch in a control group of its own ends at once; without one it ends process by process."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from launch_bench import Bench, alive_with, wait_until

from triage.core.launch import Crashed
from triage.launch import cgroups, process

pytestmark = pytest.mark.real
MEMORY = Path("/sys/fs/cgroup/memory")
# Forks as fast as it can, each child in a session of its own.
BOMB = """
import os, sys, time
for _ in range(300):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        time.sleep(600)
time.sleep(600)
"""


@pytest.fixture
def group() -> Iterator[cgroups.Group]:
    made = cgroups.make(f"triage-test-{os.getpid()}-{time.monotonic_ns()}")
    if isinstance(made, str):
        pytest.skip(made)
    yield made
    made.kill()
    wait_until(made.remove)


def bomb(group: cgroups.Group, token: object) -> subprocess.Popen[bytes]:
    started = subprocess.Popen(
        [sys.executable, "-S", "-c", BOMB, str(token)],
        preexec_fn=lambda: group.add(os.getpid()),  # noqa: PLW1509  nothing else runs here
    )
    wait_until(lambda: len(group.members()) > 50)
    return started


def test_all_of_a_group_ends_at_once_also_what_forks_meanwhile(
    group: cgroups.Group, tmp_path: Path
) -> None:
    with bomb(group, tmp_path):
        began = time.monotonic()
        group.kill()
        wait_until(lambda: not group.populated())
        assert time.monotonic() - began < 8
    assert alive_with(str(tmp_path)) == []


def test_an_older_kernel_holds_them_first(
    group: cgroups.Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = cgroups._write

    def without_kill(path: str, text: str) -> None:
        if path.endswith("cgroup.kill"):
            raise FileNotFoundError(path)
        write(path, text)

    monkeypatch.setattr(cgroups, "_write", without_kill)
    with bomb(group, tmp_path):
        group.kill()
        wait_until(lambda: not group.populated())
    assert alive_with(str(tmp_path)) == []


@pytest.mark.parametrize("grouped", [True, False])
def test_daemons_end_both_ways_and_the_account_tells_which(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, grouped: bool
) -> None:
    if grouped:
        tried = cgroups.make("triage-test")
        if isinstance(tried, str):
            pytest.skip(tried)
        assert tried.remove()
    monkeypatch.setattr(
        process, "ProcessTarget", functools.partial(process.ProcessTarget, grouped=grouped)
    )
    capture = bench.launch("stubborn", "child", f"daemon:{tmp_path}", "sleep:0.5", "exit:7")
    assert capture.outcome == Crashed(exit_code=7)
    assert alive_with(str(tmp_path)) == []
    said = json.loads((bench.folder / "exit.json").read_text())["said"]
    if grouped:
        (line,) = said
        path = line.removeprefix("control group ").partition(":")[0]
        assert path.startswith(cgroups.own_folder())
        assert not Path(path).exists()
    else:
        assert said == []


def fake_proc(folder: Path, cgroup: str, mounts: str) -> None:
    own = folder / "proc" / "self"
    own.mkdir(parents=True)
    (own / "cgroup").write_text(cgroup)
    (own / "mountinfo").write_text(mounts)


def test_the_nearest_group_that_counts_kills_for_memory_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "fs"
    mount = f"35 30 0:30 /pod {place} rw,nosuid shared:4 - cgroup2 cgroup rw\n"
    fake_proc(tmp_path, "0::/pod/user.slice/session-3.scope/triage\n", mount)
    monkeypatch.setattr(cgroups, "PROC", str(tmp_path / "proc"))
    scope = place / "user.slice" / "session-3.scope"
    (scope / "triage").mkdir(parents=True)
    (scope / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n")
    (place / "memory.events").write_text("oom_kill 5\n")
    kills = cgroups.Kills()
    kills.look()
    assert kills.since() == {}, "what was killed before was not ours"
    (scope / "memory.events").write_text("low 0\nhigh 0\nmax 20\noom 3\noom_kill 3\n")
    assert kills.since() == {f"{scope}/memory.events": 2}


@pytest.mark.parametrize("cgroup", ["0::/../../session\n", "0::/elsewhere\n", ""])
def test_a_group_that_is_not_seen_from_here_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cgroup: str
) -> None:
    mount = f"35 30 0:30 /pod {tmp_path} rw - cgroup2 cgroup rw\n"
    fake_proc(tmp_path, cgroup, mount)
    monkeypatch.setattr(cgroups, "PROC", str(tmp_path / "proc"))
    assert cgroups.own_folder() == ""
    assert cgroups.make("triage-test") == "no hierarchy of version 2 is mounted here"


def test_a_folder_that_is_no_group_is_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_proc(tmp_path, "0::/\n", f"35 30 0:30 / {tmp_path} rw - cgroup2 cgroup rw\n")
    monkeypatch.setattr(cgroups, "PROC", str(tmp_path / "proc"))
    assert cgroups.make("triage-test") == f"{tmp_path} is no control group"
    assert not (tmp_path / "triage-test").exists()


def test_a_server_that_the_kernel_killed_for_memory_is_told_so(bench: Bench) -> None:
    """A limit of version 1, for real; the server goes into the group by itself."""
    group = MEMORY / f"triage-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text("60000000")
    except OSError as error:
        pytest.skip(f"no memory limit of version 1 can be set: {error}")
    code = (
        f"import os, time; open('{group}/cgroup.procs', 'w').write(str(os.getpid()))\n"
        "time.sleep(3)\nheld = [bytearray(b'x' * (1 << 20)) for _ in range(1000)]"
    )
    try:
        capture = bench.launch(argv=(sys.executable, "-c", code))
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()
    assert capture.outcome == Crashed(exit_code=-9)
    said = json.loads((bench.folder / "exit.json").read_text())["said"]
    assert f"{group}/memory.oom_control: oom_kill 1" in said

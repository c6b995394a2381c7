"""The guard's order, its light imports, and the facts of processes and ports that it rests on."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.errors import HostError
from triage.launch import free_port, guard, leftovers, process, sockets, tree

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
NAME = st.text("ABC_", min_size=1, max_size=5)


@settings(max_examples=50, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=5), st.dictionaries(NAME, TEXT, max_size=5))
def test_an_order_is_read_back_and_the_command_after_it_is_not_touched(
    argv: list[str], env: dict[str, str]
) -> None:
    read, write = os.pipe()
    order = guard.encode_order(argv, env, cwd="/a b", tmpdir="/tmp/é", parent=12, group="triage-x")
    os.write(write, order + guard.END)
    os.close(write)
    decoded = guard.read_order(read)
    assert decoded is not None
    assert [os.fsdecode(word) for word in decoded.argv] == argv
    assert {os.fsdecode(name): os.fsdecode(text) for name, text in decoded.env.items()} == env
    assert (decoded.cwd, decoded.tmpdir, decoded.parent) == (b"/a b", "/tmp/é", 12)
    assert os.read(read, 10) == guard.END
    os.close(read)


def test_an_order_that_is_cut_off_starts_nothing() -> None:
    read, write = os.pipe()
    os.write(write, guard.encode_order(["true"], {}, cwd="/", tmpdir="/t", parent=1)[:-3])
    os.close(write)
    assert guard.read_order(read) is None
    os.close(read)


def test_the_guard_imports_nothing_heavy() -> None:
    code = process._GUARD.replace("; main()", "; print(*sorted(sys.modules))")
    root = str(Path(process.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-S", "-I", "-c", code, root], capture_output=True, text=True, check=True
    )
    heavy = {"re", "json", "typing", "dataclasses", "subprocess", "threading", "socket", "pathlib"}
    assert heavy & set(done.stdout.split()) == set()
    assert "triage.launch.guard" in done.stdout.split()


def test_a_process_name_may_hold_brackets_and_spaces() -> None:
    proc = tree.Proc(5, "5 (a) b (c)) S 4 3 2 " + " ".join(["0"] * 15) + " 777 0")
    assert (proc.comm, proc.state, proc.parent, proc.session) == ("a) b (c)", "S", 4, 2)
    assert (proc.start, proc.alive) == (777, True)


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    proc = tree.look(child.pid)
    assert proc is not None
    assert proc.state == "Z"
    assert not proc.alive
    child.wait()


def test_processes_are_found_by_session_start_variable_and_descent() -> None:
    def proc(pid: int, parent: int, session: int, start: int = 9, state: str = "S") -> tree.Proc:
        return tree.Proc(pid, f"{pid} (x) {state} {parent} 0 {session} " + "0 " * 15 + f"{start} 0")

    # Above the largest possible PID, so that /proc/PID/environ of none exists.
    base = 5_000_000
    processes = {
        base + number: made
        for number, made in {
            1: proc(base + 1, 1, 100),  # of a session that was seen
            2: proc(base + 2, 1, 300, start=7),  # seen itself
            3: proc(base + 3, 1, 300, start=8),  # a later process with the PID of one seen
            4: proc(base + 4, base + 2, 400),  # below one that was seen
            5: proc(base + 5, base + 2, 400, state="Z"),
        }.items()
    }
    known = {base + 2: (100, 7), base + 3: (100, 6)}
    found = tree.marked(known, "TRIAGE_LAUNCH=1", processes)
    assert sorted(item.pid - base for item in found) == [1, 2, 4]


def test_a_folder_is_removed_with_links_and_locked_folders_but_not_their_targets(
    tmp_path: Path,
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "keep").touch()
    folder = tmp_path / "folder"
    (folder / "locked").mkdir(parents=True)
    (folder / "locked" / "file").touch()
    (folder / "locked").chmod(0)
    (folder / "link").symlink_to(target)
    assert leftovers.remove_folder(str(folder)) == [str(folder / "link"), str(folder / "locked")]
    assert not folder.exists()
    assert (target / "keep").exists()


def test_two_blocks_of_ports_never_meet() -> None:
    with free_port() as first, free_port() as second:
        assert abs(first - second) >= 250
        locks = {Path(f"/tmp/triage-port-{base}.lock") for base in (first, second)}
        assert all(lock.exists() for lock in locks)
    assert not any(lock.exists() for lock in locks)


def test_a_block_with_a_busy_port_is_passed_over() -> None:
    with free_port() as first:
        pass
    with socket.create_server(("127.0.0.1", first + 235)), free_port() as second:
        assert second != first


def test_a_block_below_the_ephemeral_range_is_asked_for() -> None:
    with free_port() as base:
        assert 12_000 <= base <= 32_768 - 250
    with pytest.raises(HostError, match="No block of 60000 free TCP ports"), free_port(60_000):
        pass


def test_a_listener_is_found_with_its_holder() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (listener,) = sockets.listeners(port)
        assert (listener.address, listener.reach) == ("127.0.0.1", "127.0.0.1")
        assert sockets.holder(listener, [1, os.getpid()]) in {os.getpid()}
        assert sockets.own_listener(port, (os.getpid(),)) == listener
        assert sockets.own_listener(port, ()) is None
    assert sockets.listeners(port) == ()


def test_a_wildcard_listener_is_reached_through_loopback_and_hides_specific_ones() -> None:
    anywhere, here = sockets.Listener("0.0.0.0", 1), sockets.Listener("127.0.0.1", 2)
    there, six = sockets.Listener("10.0.0.1", 3), sockets.Listener("::", 4)
    assert (anywhere.reach, six.reach) == ("127.0.0.1", "::1")
    assert anywhere.hides(here)
    assert here.hides(anywhere)
    assert not here.hides(there)
    assert not six.hides(here)


def test_a_tmpdir_that_is_too_long_for_a_socket_is_not_used(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 60)
    deep.mkdir()
    assert process._temporary({"TMPDIR": str(deep)}) == "/tmp"
    assert process._temporary({"TMPDIR": "/no/such"}) == "/tmp"
    assert process._temporary({"TMPDIR": "/dev/shm"}) == "/dev/shm"

"""A block of ports belongs to one triage at a time, whoever left a lock file behind."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from triage.errors import HostError
from triage.launch import free_port, ports

FIRST, SECOND = 11_000, 11_250  # below those of real launches


@pytest.fixture
def locks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder like /tmp for the locks, and two blocks only."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o1777)
        monkeypatch.setattr(ports, "_LOCKS", folder)
        monkeypatch.setattr(ports, "_LOWEST", FIRST)
        monkeypatch.setattr(ports, "_ephemeral", lambda: SECOND + 251)
        yield folder


def test_two_blocks_are_different_and_a_third_is_not_there(locks: Path) -> None:
    with free_port() as one, free_port() as other:
        assert {one, other} == {FIRST, SECOND}
        assert len(list(locks.iterdir())) == 2
        with pytest.raises(HostError), free_port():
            pass
    assert list(locks.iterdir()) == []


def test_a_block_whose_port_is_taken_is_passed_over(locks: Path) -> None:
    with free_port() as one:
        pass
    with socket.create_server(("127.0.0.1", one)), free_port() as other:
        assert other != one


def test_everybody_may_read_a_lock_whatever_the_umask_says(locks: Path) -> None:
    old = os.umask(0o077)
    try:
        with free_port():
            (file,) = locks.iterdir()
            assert stat.S_IMODE(file.stat().st_mode) == 0o644
    finally:
        os.umask(old)


def test_what_is_no_lock_of_a_triage_is_not_followed_opened_or_waited_for(
    locks: Path, tmp_path: Path
) -> None:
    (locks / f"triage-port-{FIRST}.lock").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(locks / f"triage-port-{SECOND}.lock")
    with free_port() as port:
        assert port == SECOND
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_lock_file_that_another_users_killed_triage_left_blocks_nobody(locks: Path) -> None:
    def as_another_user() -> int:
        with free_port() as one, free_port() as other:
            return 0 if one != other else 1

    for base in (FIRST, SECOND):
        (locks / f"triage-port-{base}.lock").touch(mode=0o644)
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.setuid(65534)
            code = as_another_user()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

"""On a node, who listens is told by the reaper, and only if it is one of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from launch_bench import ENGINE, wait_until

from triage.launch import free_port
from triage.launch.jobscript import node_program

pytestmark = pytest.mark.real


@contextmanager
def reaper(folder: Path, port: int, *words: str) -> Iterator[None]:
    program = [sys.executable, "-c", node_program(), f"{folder}/exits-0"]
    command = [sys.executable, ENGINE, str(port), *words]
    env = os.environ | {"TRIAGE_PORT": str(port)}
    with subprocess.Popen([*program, *command], env=env, stdout=subprocess.DEVNULL) as started:
        yield
        started.send_signal(signal.SIGUSR1)


def test_a_listener_of_its_own_is_proved(tmp_path: Path) -> None:
    with free_port() as port, reaper(tmp_path, port, "sleep:0.5", "serve", "hang"):
        wait_until((tmp_path / "listens-0").exists)


def test_a_listener_of_somebody_else_is_not(tmp_path: Path) -> None:
    with (
        free_port() as port,
        socket.create_server(("127.0.0.1", port)),
        reaper(tmp_path, port, "say:up", "hang"),
    ):
        time.sleep(2.5)  # longer than between two looks
        assert not (tmp_path / "listens-0").exists()


def test_the_server_does_not_see_what_is_meant_for_the_reaper(tmp_path: Path) -> None:
    told = tmp_path / "told"
    with free_port() as port:
        program = [sys.executable, "-c", node_program(), f"{tmp_path}/exits-0"]
        with told.open("wb") as file:
            subprocess.run(
                [*program, sys.executable, ENGINE, str(port), "env:TRIAGE_PORT"],
                env=os.environ | {"TRIAGE_PORT": str(port)}, stdout=file, check=True,
            )  # fmt: skip
    assert told.read_text() == "TRIAGE_PORT=None\n"

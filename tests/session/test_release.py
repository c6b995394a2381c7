"""GPU memory after a launch: the real pynvml on a stand-in for the driver's library."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fake_gpus import FakeGpus

from triage.session.release import await_release, memory_used

pytest_plugins = ["fake_gpus"]


@pytest.fixture
def server() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])


def test_memory_that_a_dying_process_holds_is_waited_for(
    fake_gpus: FakeGpus, server: subprocess.Popen[bytes]
) -> None:
    before = memory_used()
    assert len(before) == 8
    fake_gpus.hold(3, server.pid, mib=5000)
    assert memory_used()[3] == before[3] + 5000
    said: list[str] = []

    def end() -> None:
        time.sleep(0.5)
        server.kill()
        server.wait()

    threading.Thread(target=end).start()
    began = time.monotonic()
    assert await_release(before, said.append, wait_s=20) == ""
    assert time.monotonic() - began >= 0.4
    assert said == ["waiting for the GPUs' memory to come back"]


def test_who_holds_memory_is_named(fake_gpus: FakeGpus, server: subprocess.Popen[bytes]) -> None:
    before = memory_used()
    fake_gpus.hold(3, server.pid, mib=5000)
    said = await_release(before, None, wait_s=0.3)
    server.kill()
    server.wait()
    assert said == f"GPU 3 still holds 5000 MiB of the launch, held by process {server.pid}"


def test_memory_of_nobody_is_told(fake_gpus: FakeGpus) -> None:
    before = memory_used()
    fake_gpus.hold(1, "leak", mib=900)
    fake_gpus.hold(2, "leak", mib=800)
    said = await_release(before, None, wait_s=0.2)
    assert said == "GPU 1 (and 1 more) still holds 900 MiB of the launch, held by no process"


def test_a_machine_without_gpus_has_nothing_to_wait_for(tmp_path: Path) -> None:
    assert await_release({}, None) == ""

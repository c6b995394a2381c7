"""`--take-over` on a real systemd: the working unit makes room, and runs again at every end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from parts import ENGINE, require

pytestmark = pytest.mark.parts
ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes" / "kimi-k2.6-b300.yaml"
PORT = 18431


@pytest.fixture
def unit() -> Iterator[str]:
    """A unit that serves, with a child that ignores SIGTERM."""
    require("systemd")
    name = "triage-test-working.service"
    file = Path("/run/systemd/system") / name
    file.write_text(
        f"[Service]\nExecStart={sys.executable} {ENGINE} {PORT} child serve polite hang\n"
        "TimeoutStopSec=60\n"
    )
    _systemctl("daemon-reload")
    _systemctl("start", name)
    yield name
    _systemctl("kill", "-s", "KILL", name)
    _systemctl("stop", name)
    file.unlink()
    _systemctl("daemon-reload")


def test_the_systemd_unit_makes_room_and_runs_again(unit: str, tmp_path: Path) -> None:
    before = _main(unit)
    seen: list[str] = []
    with _bisect(unit, tmp_path) as triage:
        while triage.poll() is None:
            session = tmp_path / "s"
            if (session / "trials" / "001").exists() and not (
                session / "recommendation.json"
            ).exists():
                seen.append(_systemctl("is-active", unit).stdout.strip())
            time.sleep(0.3)
    assert triage.returncode == 0
    assert set(seen[:-1]) <= {"inactive", "failed"}, "it held its port while the trials ran"
    assert seen
    assert _systemctl("is-active", unit).stdout.strip() == "active"
    assert _main(unit) not in {"0", before}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_systemd_unit_runs_again_after_a_kill(unit: str, tmp_path: Path, number: int) -> None:
    with _bisect(unit, tmp_path) as triage:
        _until((tmp_path / "s" / "trials" / "001" / "server.log").exists, 30)
        assert _systemctl("is-active", unit).stdout.strip() in {"inactive", "failed"}
        os.kill(triage.pid, number)
        triage.wait(30)
    _until(lambda: _systemctl("is-active", unit).stdout.strip() == "active", 30)
    assert _systemctl("is-active", unit).stdout.strip() == "active"


def test_a_systemd_unit_that_does_not_run_is_refused(unit: str, tmp_path: Path) -> None:
    for name, said in (("no-such.service", "there is no unit"), (unit, "does not run")):
        if name == unit:
            _systemctl("stop", unit)
        with _bisect(name, tmp_path) as triage:
            _, errors = triage.communicate(timeout=60)
        assert triage.returncode == 2
        assert said in errors


def _bisect(unit: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "triage", "bisect", str(RECIPE), "--engine", "replay",
         "--goal", "best", "--take-over", unit, "--session", str(folder / "s")],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def _main(unit: str) -> str:
    return _systemctl("show", "-p", "MainPID", "--value", unit).stdout.strip()


def _systemctl(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemctl", *words], capture_output=True, text=True, timeout=90, check=False
    )


def _until(done: Callable[[], bool], within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while not done() and time.monotonic() < deadline:
        time.sleep(0.05)

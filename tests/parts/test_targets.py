"""Each way to launch against the real thing: systemd as PID 1, podman with runc, Slurm's own daemons.

Run by `make parts`. A part that is not there is skipped with its reason.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from parts import ENGINE, PYTHON, alive, place, require

from triage.core.launch import Crashed, Hung, Interrupted, LaunchSpec, Patience, Ready
from triage.core.log.live import Live
from triage.errors import TriageError
from triage.launch import free_port, launch

pytestmark = pytest.mark.parts
KINDS = ("process", "systemd", "container", "slurm")
SECRET = "hf_" + "PlantedSecretOfTheTest"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    require(request.param)
    return str(request.param)


@pytest.fixture
def port() -> Iterator[int]:
    with free_port() as first:
        yield first


def spec_of(kind: str, port: int, *deeds: str, silent_s: float = 15.0) -> LaunchSpec:
    return LaunchSpec(
        argv=(PYTHON, str(ENGINE), str(port), *deeds),
        env=(("HF_TOKEN", SECRET), ("HF_HUB_OFFLINE", "1")),
        cwd=str(Path.cwd()),
        port=port,
        patience=Patience(silent_s=silent_s, total_s=60),
        place=place(kind),
    )


def test_a_crash_gives_its_exit_code_and_every_line(kind: str, port: int, tmp_path: Path) -> None:
    spec = spec_of(kind, port, "say:one", "err:two", "raw:ff0a", "exit:7")
    capture = launch(spec, tmp_path, Live(()))
    assert capture.outcome == Crashed(exit_code=7)
    log = (tmp_path / "server.log").read_bytes()
    assert all(part in log for part in (b"one\n", b"two\n", b"\xff\n"))
    assert not alive(port)


def test_a_segfault_is_told_as_its_signal(kind: str, port: int, tmp_path: Path) -> None:
    capture = launch(spec_of(kind, port, "say:up", "segfault"), tmp_path, Live(()))
    assert capture.outcome == Crashed(exit_code=-signal.SIGSEGV)


def test_a_server_that_answers_is_ready(kind: str, port: int, tmp_path: Path) -> None:
    serve = "serve_on_first:{node_rank}@{head}" if kind == "slurm" else "serve"
    deeds = (serve, "polite", "say:The server is fired up and ready to roll!", "hang")
    asked: list[str] = []
    capture = launch(
        spec_of(kind, port, *deeds),
        tmp_path,
        Live(()),
        while_ready=lambda server: asked.append(server.generate("2 + 2 =", 3)),
    )
    assert isinstance(capture.outcome, Ready)
    assert asked == ["2 + 2 = / 3"]
    assert not alive(port)


def test_a_silent_server_is_hung_and_its_stacks_are_kept(
    kind: str, port: int, tmp_path: Path
) -> None:
    capture = launch(spec_of(kind, port, "say:up", "hang", silent_s=3.0), tmp_path, Live(()))
    assert isinstance(capture.outcome, Hung)
    assert "hang (" in Path(capture.stacks).read_text()
    assert not alive(port)


def test_a_tree_that_ignores_sigterm_and_left_its_session_is_ended(
    kind: str, port: int, tmp_path: Path
) -> None:
    deeds = ("stubborn", "child", f"daemon:port-{port}", "sleep:1", "exit:1")
    began = time.monotonic()
    capture = launch(spec_of(kind, port, *deeds), tmp_path, Live(()))
    assert capture.outcome == Crashed(exit_code=1)
    assert not alive(port)
    assert time.monotonic() - began < 50


def test_a_program_that_is_not_there_is_an_error_of_ours_or_a_crash(
    kind: str, port: int, tmp_path: Path
) -> None:
    spec = LaunchSpec(argv=("/nowhere/python",), port=port, place=place(kind), cwd=str(Path.cwd()))
    if kind in {"process", "systemd"}:
        with pytest.raises(TriageError, match=r"nowhere|not started"):
            launch(spec, tmp_path, Live(()))
    else:
        assert isinstance(launch(spec, tmp_path, Live(())).outcome, Crashed | Interrupted)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_triage(kind: str, port: int, tmp_path: Path, number: int) -> None:
    program = (
        "import sys; sys.path[:0] = [sys.argv[1], sys.argv[2]]\n"
        "from pathlib import Path; from test_targets import spec_of\n"
        "from triage.launch import launch; from triage.core.log.live import Live\n"
        "launch(spec_of(sys.argv[3], int(sys.argv[4]), 'stubborn', 'child',"
        " 'say:up', 'hang'), Path(sys.argv[5]), Live(()))"
    )
    here = Path(__file__).parent
    words = [PYTHON, "-c", program, str(here), str(here.parents[1]), kind, str(port), str(tmp_path)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL, start_new_session=True) as triage:
        _until(lambda: b"up" in _read(tmp_path / "server.log"), 20)
        os.kill(triage.pid, number)
        triage.wait(30)
    # That it takes two seconds at most, `make torture-full` measures on a quiet machine.
    _until(lambda: not alive(port), 15)
    assert not alive(port)
    if kind == "systemd":
        _until(lambda: not list(Path("/run/systemd/system").glob("triage-*")), 15)
        assert not list(Path("/run/systemd/system").glob("triage-*"))


def test_no_file_of_a_launch_holds_a_secret(kind: str, port: int, tmp_path: Path) -> None:
    launch(spec_of(kind, port, "say:up", "exit:1"), tmp_path, Live(()))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _until(done: object, within_s: float) -> None:
    assert callable(done)
    deadline = time.monotonic() + within_s
    while not done() and time.monotonic() < deadline:
        time.sleep(0.05)

"""What a launch leaves beside its log, and what is said of what it does not leave."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from fake_gpus import FakeGpus

from triage.core.config import Config
from triage.core.evidence import KINDS, Evidence, Piece
from triage.core.launch import Capture, Container, Crashed, Job, LaunchSpec, Patience, Process
from triage.errors import HostError
from triage.launch import Server
from triage.machine import recorder
from triage.machine.kernel import KernelLog
from triage.session import evidence as gathered
from triage.session.diff import _asked
from triage.session.evidence import Gathering, differences, read_evidence, read_exits
from triage.session.logs import log_sources
from triage.session.trial import Setup, launch_once, replay_setup, stored_diagnosis

pytestmark = pytest.mark.real
SECRET = "hf_" + "PlantedSecretOfTheTest"
SERVER = """
import http.server, json, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def answer(self, body, status=200):
        raw = json.dumps(body).encode()
        self.send_response(status); self.send_header("Content-Length", str(len(raw)))
        self.end_headers(); self.wfile.write(raw)
    def do_GET(self):
        if self.path == PATH:
            return self.answer({"version": "0.5.23", "api_key": "%s", "tp_size": 8,
                                "launch_command": "serve --api-key my-own-key-7"})
        self.answer({}, 200 if self.path == "/health" else 404)
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"])); self.answer({"text": "four"})
port = int(sys.argv[sys.argv.index("--port") + 1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
print("The server is fired up and ready to roll!", flush=True)
server.serve_forever()
"""


def setup(tmp_path: Path, code: str, **env: str) -> Setup:
    return Setup(
        program=(sys.executable, "-c", code),
        env=tuple(env.items()),
        cwd=tmp_path,
        patience=Patience(silent_s=20, total_s=30),
        engine="sglang",
    )


def trial(session: Path, number: int) -> Path:
    (session / "session.json").parent.mkdir(exist_ok=True)
    (session / "session.json").write_text("{}")
    return session / f"trials/{number:03d}"


def item(found: Evidence, kind: str) -> Piece:
    return next(one for one in found.pieces if one.kind == kind)


def test_each_kind_of_evidence_is_there_or_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Also where there is a driver, or another test's stand-in for it is loaded.
    monkeypatch.setattr(recorder, "has_driver", lambda: False)
    folder = trial(tmp_path / "s", 1)
    result = launch_once(setup(tmp_path, "raise SystemExit(3)"), Config(), folder)
    assert result.capture.outcome == Crashed(exit_code=3)
    found = read_evidence(folder)
    assert found is not None
    assert tuple(one.kind for one in found.pieces) == KINDS
    for one in found.pieces:
        assert bool(one.say) != bool(one.missing), one
        assert not one.file or (folder / one.file).is_file(), one
    assert item(found, "gpus").missing == "none"
    assert item(found, "stacks").missing.startswith("no process was alive")
    assert item(found, "server-info").missing == "the server did not come up"
    assert read_exits(folder)[0].exit_code == 3
    assert stored_diagnosis(folder).title == result.diagnosis.title


@pytest.mark.parametrize("path", ["/server_info", "/get_server_info"])
def test_a_server_that_came_up_tells_of_itself_without_secrets(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "launch"
    code = SERVER.replace("PATH", repr(path)) % SECRET
    config = Config.of({"api-key": "my-own-key-7"}, {})
    asked: list[str] = []

    def work(server: Server) -> None:
        asked.append(server.generate("2 + 2", 1))

    launch_once(setup(tmp_path, code), config, folder, while_ready=work)
    assert asked == ["four"]
    stored = json.loads((folder / "server_info.json").read_text())
    assert (stored["schema"], stored["path"]) == ("triage.served/1", path)
    assert stored["told"]["tp_size"] == 8
    text = (folder / "server_info.json").read_text()
    assert SECRET not in text
    assert "my-own-key-7" not in text
    found = read_evidence(folder)
    assert found is not None
    assert item(found, "server-info").say == "4 values of version 0.5.23"


def test_the_environment_is_kept_once_and_then_its_differences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathered, "engine_python", lambda *_: sys.executable)
    monkeypatch.setenv("HF_TOKEN", SECRET)
    monkeypatch.setenv("SOME_PRIVATE_THING", "nobody's business")
    session = tmp_path / "s"
    launch_once(setup(tmp_path, "1", NCCL_DEBUG="INFO"), Config(), trial(session, 1))
    stored = json.loads((session / "environment.json").read_text())
    assert stored["packages"]["pytest"] == pytest.__version__
    assert stored["python_version"] == ".".join(map(str, sys.version_info[:3]))
    assert stored["variables"]["NCCL_DEBUG"] == "INFO"
    assert stored["variables"]["HF_TOKEN"] == "REDACTED"
    assert "SOME_PRIVATE_THING" in stored["names"]
    assert "TMPDIR" not in {**stored["variables"], **dict.fromkeys(stored["names"])}
    text = (session / "environment.json").read_text()
    assert SECRET not in text
    assert "nobody's business" not in text
    launch_once(setup(tmp_path, "1", NCCL_DEBUG="INFO"), Config(), trial(session, 2))
    launch_once(setup(tmp_path, "1", NCCL_DEBUG="WARN", NEW="1"), Config(), trial(session, 3))
    same, other = (read_evidence(trial(session, number)) for number in (2, 3))
    assert same is not None
    assert item(same, "environment").say == "as at the first launch"
    assert item(same, "environment").file == "../../environment.json"
    assert other is not None
    assert [(d.name, d.before, d.after) for d in other.differences] == [
        ("variable NCCL_DEBUG", "INFO", "WARN"),
        ("variable NEW", None, "(set)"),
    ]


def test_the_simulated_engine_is_never_sampled(tmp_path: Path, fake_gpus: FakeGpus) -> None:
    landscape = Path(__file__).parents[2] / "fixtures/landscapes/kimi-k2.6-b300.yaml"
    simulated = replay_setup(setup(tmp_path, "1"), landscape, 1000.0)
    folder = tmp_path / "launch"
    launch_once(simulated, Config.of({"model-path": "/m"}, {}), folder)
    found = read_evidence(folder)
    assert found is not None
    assert found.simulated
    assert found.gpus == ()
    assert not (folder / "gpus.jsonl").exists()
    assert {item(found, kind).missing for kind in ("gpus", "kernel", "environment", "stacks")} == {
        "simulated"
    }


def test_the_gpus_of_a_launch_are_sampled_and_summed_up(
    tmp_path: Path, fake_gpus: FakeGpus
) -> None:
    fake_gpus.set("all.used=500", "1.used=170000")
    folder = tmp_path / "launch"
    result = launch_once(setup(tmp_path, "import time; time.sleep(0.7)"), Config(), folder)
    assert result.held == ""
    found = read_evidence(folder)
    assert found is not None
    assert "memory peaked at 170000 MiB on GPU 1 (least: GPU 0, 500 MiB)" in item(found, "gpus").say
    assert found.share < 0.05
    assert (folder / "gpus.jsonl").read_text().count("\n") >= 2


def spec_at(place: object, folder: Path) -> Gathering:
    spec = LaunchSpec(argv=("x",), port=1, place=place)  # type: ignore[arg-type]
    return Gathering(spec, folder, lambda: "unknown", ("python3", "-m", "sglang.launch_server"))


@pytest.mark.parametrize(
    ("place", "missing"),
    [
        (Container(run=("docker", "run", "image")), {"environment": "inside the container"}),
        (
            Job(nodes=2),
            {
                "environment": "those of the job's nodes",
                "gpus": "those of the job's nodes",
                "kernel": "that of the job's nodes",
            },
        ),
    ],
)
def test_what_this_machine_does_not_see_is_said(
    tmp_path: Path, place: object, missing: dict[str, str]
) -> None:
    (tmp_path / "server.log").write_text("x")
    capture = Capture(
        outcome=Crashed(exit_code=1), seconds=1, log=str(tmp_path / "server.log"), phase="unknown",
        unseen="no node told how its processes ended",
    )  # fmt: skip
    with spec_at(place, tmp_path) as gathering:
        found = gathering.finish(capture)
    for kind, words in missing.items():
        said = item(found, kind)
        assert words in (said.missing or said.say), said
    assert item(found, "exits").missing == "no node told how its processes ended"


def test_lines_of_the_kernel_are_kept_and_explain_the_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for the ring buffer: the kill of a rank whose number the launch prints."""
    told = tmp_path / "pid"
    code = (
        "import subprocess, sys, time\n"
        "made = subprocess.Popen(['sglang::scheduler_TP1', '-c', 'import time; time.sleep(60)'],"
        " executable=sys.executable)\n"
        f"open({str(told)!r}, 'w').write(str(made.pid)); time.sleep(0.6); made.kill(); made.wait()\n"
        "print('[2026-07-01 12:00:01 TP0] Load weight begin. avail mem=170.00 GB', flush=True)\n"
        "time.sleep(0.3); sys.exit(1)\n"
    )

    def lines(_: KernelLog) -> tuple[str, ...]:
        return (
            f"[  812.000001] Out of memory: Killed process {told.read_text()} (sglang::schedul)"
            f" total-vm:9kB {SECRET}",
        )

    monkeypatch.setattr(KernelLog, "lines", lines)
    folder = tmp_path / "launch"
    result = launch_once(setup(tmp_path, code), Config(), folder)
    assert (result.diagnosis.cause, result.diagnosis.ranks) == ("host-oom-killed", ("TP1",))
    assert "first to end: TP1 (process" in result.diagnosis.outside[0]
    assert "Killed process" in (folder / "kernel.log").read_text()
    for file in folder.iterdir():
        assert SECRET not in file.read_text(errors="replace"), file.name
    assert stored_diagnosis(folder).cause == "host-oom-killed", "and it is so when read again"


def test_a_session_of_an_older_triage_has_no_evidence_and_opens(tmp_path: Path) -> None:
    assert read_evidence(tmp_path) is None
    (tmp_path / "exit.json").write_text('{"schema": "triage.exit/1", "how": "crashed"}')
    assert read_exits(tmp_path) == ()
    (tmp_path / "evidence.json").write_text("[]")
    assert read_evidence(tmp_path) is None


def test_a_damaged_account_of_the_environment_is_written_anew(tmp_path: Path) -> None:
    assert differences({}, {"variables": {"A": "1"}, "names": None})[0].after == "1"
    assert differences({"python": "/p"}, {"python": "/p"}) == ()


def test_an_interrupted_launch_leaves_no_thread(tmp_path: Path, fake_gpus: FakeGpus) -> None:
    import threading

    gathering = spec_at(Process(), tmp_path)
    with pytest.raises(KeyboardInterrupt), gathering:
        raise KeyboardInterrupt
    assert not any(one.name == "triage-recorder" for one in threading.enumerate())


def test_launches_side_by_side_write_one_account(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    session = tmp_path / "s"
    folders = [trial(session, number) for number in range(1, 5)]

    def go(folder: Path) -> bool:
        launch_once(setup(tmp_path, "1"), Config(), folder)
        return read_evidence(folder) is not None

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(go, folders))
    assert json.loads((session / "environment.json").read_text())["schema"]
    assert not list(session.rglob("*.new"))


def test_a_folder_that_takes_nothing_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError) as caught, spec_at(Process(), tmp_path / "file/launch"):
        pass
    assert caught.value.hint.startswith("df -h")


def test_what_a_server_told_stands_in_for_a_log_that_prints_no_arguments(tmp_path: Path) -> None:
    told = {"tp_size": 8, "internal_states": [{"x": 1}], "version": "0.5.23"}
    (tmp_path / "server_info.json").write_text(json.dumps({"path": "/server_info", "told": told}))
    assert _asked(tmp_path) == ({"tp_size": 8}, "")
    (tmp_path / "server_info.json").write_text("[]")
    assert _asked(tmp_path) == (None, "")


def test_a_folder_of_a_launch_holds_one_log_to_classify(tmp_path: Path) -> None:
    launch = tmp_path / "trials/001"
    launch.mkdir(parents=True)
    for name in ("server.log", "stacks.txt", "kernel.log", "exit.json"):
        (launch / name).write_text('{"schema": "triage.exit/1"}' if name.endswith("json") else "x")
    assert log_sources([str(tmp_path)]) == (str(launch / "server.log"),)
    (launch / "exit.json").unlink()
    assert len(log_sources([str(tmp_path)])) == 3, "they are somebody's logs"


def test_a_real_kill_for_memory_is_found_in_the_kernel_s_log(tmp_path: Path) -> None:
    """A launch in a control group of 64 MiB: the kernel kills it, and names it in its log."""
    group = Path("/sys/fs/cgroup/memory") / f"triage-test-{os.getpid()}"
    limit = group / "memory.limit_in_bytes"
    if not os.access("/dev/kmsg", os.R_OK):
        pytest.skip("/dev/kmsg cannot be read")
    try:
        group.mkdir()
        limit.write_text(str(64 << 20))
    except OSError as error:
        pytest.skip(f"no control group of version 1 can be limited here: {error.strerror}")
    code = (
        "import os, sys, time\n"
        f"open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
        "print('[2026-07-01 12:00:01 TP0] Load weight begin. avail mem=170.00 GB', flush=True)\n"
        "time.sleep(0.3)\n"
        "held = bytearray(512 << 20)\n"
    )
    try:
        result = launch_once(setup(tmp_path, code), Config(), tmp_path / "launch")
    finally:
        group.rmdir()
    assert result.capture.outcome == Crashed(exit_code=-9)
    assert (result.diagnosis.cause, result.diagnosis.confidence) == ("host-oom-killed", "high")
    pid = result.capture.pids[0]
    assert any(f"Killed process {pid} " in line for line in result.diagnosis.outside)
    assert "(process " in result.diagnosis.outside[0]

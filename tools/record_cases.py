"""Record what real SGLang prints in a named scenario, as a fixture.

In:  names from scenarios.yaml; `.sglang` and `.models` (make sglang-cpu models).
Out: fixtures/cases/<name>/server.log (raw but redacted) and case.yaml.
Not: judging the log (the expectation is written by hand in scenarios.yaml).

    .venv/bin/python tools/record_cases.py warmup-never-scheduled--tp2 ...

A scenario runs in a session of its own with its own temporary folder; whatever
is left of it at the end is killed by pid. Only the memory limit needs root.
"""

from __future__ import annotations

import argparse
import contextlib
import getpass
import http.server
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

import psutil
import yaml
from scenarios import DIST_PORT, Scenario, load_scenarios

from triage.core.redact import redact
from triage.launch.leftovers import FileId, remove_shared, used_by

ROOT = Path(__file__).resolve().parent.parent
REMEDIES = ROOT / "tools/case_remedies.yaml"
PYTHON = ROOT / ".sglang/bin/python"
MODELS = ROOT / ".models"
STUBS = ROOT / "tools/stubs"
MEMORY_CGROUPS = Path("/sys/fs/cgroup/memory")
READY_LINE = b"The server is fired up and ready to roll!"
POLL_S = 0.25
TOTAL_S = 300.0
STOP_S = 30.0


@dataclass
class Launch:
    """A running scenario: its main process, its log so far, and what it was given."""

    process: subprocess.Popen[bytes]
    log: Path
    port: int
    started: float
    shared: set[FileId] = field(default_factory=set)  # shared memory that it used

    def text(self) -> bytes:
        """Everything printed up to now."""
        return self.log.read_bytes()

    def members(self) -> list[psutil.Process]:
        """Every live process of the launch's session, whoever its parent is now."""
        members = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                gone = process.status() == psutil.STATUS_ZOMBIE
                if os.getsid(process.pid) == self.process.pid and not gone:
                    members.append(process)
        return members


def command(scenario: Scenario, port: int) -> list[str]:
    """The server's argv; the model is a folder of `.models` or, with a slash, a hub id."""
    model = scenario.model if "/" in scenario.model else str(MODELS / scenario.model)
    flags = shlex.split(scenario.command_flags())
    words = [str(PYTHON), "-m", "sglang.launch_server", "--model-path", model]
    return [*words, *flags, "--port", str(port)]


def environment(scenario: Scenario, tmp: str) -> dict[str, str]:
    """The inherited environment with what every scenario gets, and its own on top."""
    path = f"{PYTHON.parent}:{os.environ['PATH']}"  # for py-spy, which the engine calls
    env = os.environ | {"PATH": path, "HF_HUB_OFFLINE": "1", "TMPDIR": tmp}
    env |= scenario.environment()
    if scenario.stubs:
        env["PYTHONPATH"] = str(STUBS)
    return env


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def play(scenario: Scenario) -> bytes:
    """Launch the scenario, act on it as it says, end it; the raw log."""
    with contextlib.ExitStack() as stack:
        # A short path: the engine puts Unix sockets there, which allow 107 characters.
        tmp = stack.enter_context(tempfile.TemporaryDirectory(prefix="rec-"))
        log = Path(tmp) / "server.log"
        port = free_port()
        group = None
        if scenario.memory_mib is not None:
            group = stack.enter_context(memory_cgroup(scenario.memory_mib))
        with log.open("wb") as out:
            process = subprocess.Popen(
                command(scenario, port),
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=environment(scenario, tmp),
                cwd=ROOT,
                start_new_session=True,
            )
        launch = Launch(process, log, port, time.time())
        stack.callback(sweep, launch)
        if group is not None:
            (group / "cgroup.procs").write_text(str(process.pid))
        act(scenario, launch, stack)
        raw = wait_for_end(scenario, launch)
        if group is not None:
            raw += kernel_lines(launch)
    return raw


def act(scenario: Scenario, launch: Launch, stack: contextlib.ExitStack) -> None:
    """Do what the scenario does when its line appears."""
    if scenario.do is None:
        return
    wait_for_line(launch, scenario.at.encode())
    match scenario.do:
        case "mute-listener":
            stack.enter_context(mute_listener(launch.port))
        case "dist-listener":
            stack.enter_context(mute_listener(DIST_PORT))
        case "http-listener":
            stack.enter_context(http_listener(launch.port))
        case "interrupt":
            launch.process.send_signal(signal.SIGINT)
        case "kill-scheduler":
            for member in launch.members():
                if member.name().startswith("sglang::schedul"):  # the kernel keeps 15 characters
                    member.kill()
        case _:
            assert_never(scenario.do)


def wait_for_line(launch: Launch, text: bytes) -> None:
    while text not in launch.text():
        if launch.process.poll() is not None or time.time() - launch.started > TOTAL_S:
            raise SystemExit(f"the line {text!r} never came")
        time.sleep(POLL_S / 5)


def wait_for_end(scenario: Scenario, launch: Launch) -> bytes:
    """Wait as the scenario says; the log as it stood then, before anything was stopped."""
    size, grew = -1, time.time()
    while True:
        ended = launch.process.poll() is not None
        raw = launch.text()
        launch.shared |= used_by(member.pid for member in launch.members())
        if len(raw) != size:
            size, grew = len(raw), time.time()
        match scenario.until:
            case "exit":
                done = ended
            case "ready":
                done = READY_LINE in raw and generates(launch.port)
                raw = launch.text()
            case "silent":
                done = time.time() - grew > scenario.seconds
            case "elapsed":
                done = time.time() - launch.started > scenario.seconds
            case _:
                assert_never(scenario.until)
        if done:
            return raw
        if ended or time.time() - launch.started > TOTAL_S:
            print(f"{scenario.name}: ended another way than planned", file=sys.stderr)
            return raw
        time.sleep(POLL_S)


def generates(port: int) -> bool:
    """Whether the server answers a generation."""
    body = {"text": "no server", "sampling_params": {"max_new_tokens": 4, "temperature": 0}}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/generate",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=STOP_S) as answer:
        return bool(answer.status == http.HTTPStatus.OK)


def sweep(launch: Launch) -> None:
    """Stop the launch: politely if it serves, then by SIGKILL to each process of its session."""
    if launch.process.poll() is None and READY_LINE in launch.text():
        launch.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            launch.process.wait(STOP_S)
    for member in launch.members():
        with contextlib.suppress(psutil.Error):
            member.kill()
    launch.process.wait(STOP_S)
    remove_shared(launch.shared)


def mute_listener(port: int) -> socket.socket:
    """A stranger on the port that accepts connections and never answers."""
    return socket.create_server(("127.0.0.1", port))


@contextlib.contextmanager
def http_listener(port: int) -> Iterator[None]:
    """Another server on the port that answers whatever the engine asks of itself."""

    class OtherServer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(http.HTTPStatus.OK)
            self.end_headers()
            self.wfile.write(b'{"is_generation": true, "model_path": "/models/other"}')

        do_POST = do_GET  # noqa: N815  names that http.server looks up

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent: the log under record is the engine's."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", port), OtherServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


@contextlib.contextmanager
def memory_cgroup(mib: int) -> Iterator[Path]:
    """A memory cgroup (version 1) with a limit; removed at the end."""
    group = MEMORY_CGROUPS / f"engine-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(mib * 2**20))
        yield group
    finally:
        for _ in range(40):  # the killed processes leave the group a moment later
            try:
                group.rmdir()
            except OSError:
                time.sleep(POLL_S)
            else:
                break


def kernel_lines(launch: Launch) -> bytes:
    """What `dmesg` says of the kill, as an engineer pastes it below the launcher's log."""
    members = f"/engine-{os.getpid()}"
    boot = psutil.boot_time()
    lines = subprocess.run(["dmesg"], capture_output=True, check=True).stdout.splitlines()
    ours = [
        line
        for line in lines
        if b"oom-kill:" in line or b"Killed process" in line or b"invoked oom-killer" in line
        if boot + float(line[1:].split(b"]")[0]) >= launch.started - 1
    ]
    if not any(members.encode() in line for line in ours):
        print("the kernel killed nothing of this launch", file=sys.stderr)
    return b"$ dmesg | grep -i -e oom -e 'killed process'\n" + b"".join(x + b"\n" for x in ours)


def replacements() -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
    """This machine's paths and names, and what stands for them in a fixture."""
    base = Path(sys.base_prefix)
    paths = {
        MODELS: "/models",
        STUBS: "/opt/stubs",
        PYTHON.parent.parent: "/opt/venv",
        PYTHON.parent.parent.resolve(): "/opt/venv",  # it may be a link
        MODELS.resolve(): "/models",
        ROOT: "/srv/app",
        base: "/usr",
        Path.home(): "/home/user",
    }
    names = {socket.gethostname(): "host", getpass.getuser(): "user"}
    # Such a word is in any log and names nobody.
    common = {"main", "root", "host", "user", "vm", "localhost"}
    return (
        {str(path).encode(): word.encode() for path, word in paths.items()},
        {n.encode(): word.encode() for n, word in names.items() if n not in common},
    )


def case_document(scenario: Scenario, log: bytes, version: str) -> dict[str, object]:
    """case.yaml: where the log comes from and what a classifier must say."""
    expect = scenario.expect.model_dump(mode="json", exclude_unset=True)
    if scenario.root is not None:
        number = line_number(log, scenario.root.encode())
        expect["root"] = {"line": number, "text": scenario.root.strip()}
    elif "root" in scenario.model_fields_set:
        expect["root"] = None
    if ways := yaml.safe_load(REMEDIES.read_text()).get(str(expect["cause"])):
        expect["remedy"] = ways
    return {
        "schema": "triage.case/1",
        "source": {
            "kind": "real",
            "engine": "sglang",
            "version": version,
            "note": f"{scenario.note} Launched on a CPU as: {scenario.typed()}",
        },
        "expect": expect,
        "known_miss": False,
    }


def line_number(log: bytes, piece: bytes) -> int:
    """Number of the first line that holds the piece; lines end with LF and count from 1."""
    for number, line in enumerate(log.split(b"\n"), 1):
        if piece in line:
            return number
    raise SystemExit(f"no line holds {piece!r}")


def record(scenario: Scenario, folder: Path) -> None:
    """Play the scenario and store its log."""
    started = time.time()
    raw = play(scenario)
    paths, names = replacements()
    log = redact(raw, paths=paths, names=names)
    at = folder / scenario.name
    at.mkdir(parents=True, exist_ok=True)
    (at / "server.log").write_bytes(log)
    print(f"{scenario.name}: {len(log)} bytes, {time.time() - started:.0f} s", flush=True)


def judge(scenario: Scenario, folder: Path, version: str) -> None:
    """Write what is expected of the stored log beside it."""
    at = folder / scenario.name
    document = case_document(scenario, (at / "server.log").read_bytes(), version)
    text = yaml.safe_dump(document, sort_keys=False, width=100, allow_unicode=True)
    (at / "case.yaml").write_text(text)


def main() -> None:
    # A shell's background job ignores Ctrl-C, and a launch would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="scenarios to record; none: list them")
    parser.add_argument(
        "--judge-only", action="store_true", help="launch nothing: case.yaml of the stored logs"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "fixtures/cases")
    args = parser.parse_args()
    file = load_scenarios()
    known = file.by_name()
    if not args.names:
        print(*known, sep="\n")
        return
    unknown = [name for name in args.names if name not in known]
    if unknown:
        parser.error(f"no such scenario: {', '.join(unknown)}; without names, all are listed")
    if not args.judge_only and installed_version() != file.engine_version:
        parser.error(f"the scenarios are of SGLang {file.engine_version}: make sglang-cpu")
    for name in args.names:
        if not args.judge_only:
            record(known[name], args.out)
        judge(known[name], args.out, file.engine_version)


def installed_version() -> str:
    """Version of the SGLang in .sglang, or "" without one."""
    found = PYTHON.parent.parent.glob("lib/python*/site-packages/sglang-*.dist-info")
    return next((x.name.removeprefix("sglang-").removesuffix(".dist-info") for x in found), "")


if __name__ == "__main__":
    main()

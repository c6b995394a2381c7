"""A server that comes up, unless `--misbehave` tells it how to fail.

    torture_engine.py --host H --port P --model-path M [--misbehave KIND] [--on-node RANK]

Kinds are the functions whose names begin with `do_`. It prints what SGLang prints on its way, so
that phases are known. What it makes has the model path in its name: it tells cells apart.
"""

from __future__ import annotations

import argparse
import ctypes
import http.server
import json
import mmap
import os
import resource
import signal
import sys
import time
from pathlib import Path

MODEL = "m"


def say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


class Handler(http.server.BaseHTTPRequestHandler):
    """Health, and one answer to every prompt."""

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        tells = self.path == "/server_info" and "TORTURE_TELLS" in os.environ
        self.answer({"launch_command": sys.argv, "env": dict(os.environ)} if tells else {})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer({"text": f" the answer to {asked.get('text', '')}"})

    def answer(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def come_up(args: argparse.Namespace) -> None:
    """Serve until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    server = http.server.ThreadingHTTPServer((args.host, args.port), Handler)
    say("The server is fired up and ready to roll!")
    server.serve_forever()


def fail(what: str) -> None:
    raise RuntimeError(f"planted: {what}")


def do_crash_at_init() -> None:
    """Before any weight is read."""
    fail("no such backend")


def do_crash_at_load() -> None:
    """While weights are read."""
    say("Load weight begin. avail mem=270.00 GB")
    fail("weights do not fit")


def do_crash_at_capture() -> None:
    """While graphs are captured."""
    say("Load weight begin. avail mem=270.00 GB")
    say("Capture cuda graph begin. This can take up to several minutes. avail mem=10.00 GB")
    fail("capture went wrong")


def do_exit_silently() -> None:
    """Without a word."""
    os._exit(1)


def do_segfault() -> None:
    """By a read of address 0."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.string_at(0)


def group_of(controller: str) -> Path | None:
    """A new control group of version 1; None where that hierarchy cannot be written."""
    for root in (Path("/run/triage-v1"), Path("/sys/fs/cgroup")):
        group = root / controller / f"{MODEL}-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        return group
    return None


def do_get_killed_for_memory() -> None:
    """By the kernel, for real: at a limit of its container, or of a group that it makes."""
    if group := group_of("memory"):
        (group / "memory.limit_in_bytes").write_text("104857600")
        (group / "cgroup.procs").write_text(str(os.getpid()))
    held = [bytearray(b"x" * (1 << 20)) for _ in range(1000)]
    say(str(len(held)))


def do_ignore_sigterm() -> None:
    """Nothing at first: it comes up, and does not go."""


def do_leave_daemons() -> None:
    """Two processes that left session, group and parent, then a crash."""
    for _ in range(2):
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            os.setsid()
            code = (
                "import signal, time; signal.signal(15, signal.SIG_IGN)\nwhile True: time.sleep(1)"
            )
            os.execve(
                sys.executable, [sys.executable, "-S", "-c", code, MODEL, str(os.getpid())], {}
            )
        os.wait()
    time.sleep(0.5)
    fail("after the daemons")


def do_hang_in_a_collective() -> None:
    """In a function of that name, without a word."""

    def all_reduce() -> None:
        while True:
            time.sleep(1)

    say("Init torch distributed begin.")
    all_reduce()


def do_freeze() -> None:
    """Like a process that is stuck in the driver: SIGKILL stays pending."""
    group = group_of("freezer")
    assert group is not None
    say("Load weight begin. avail mem=270.00 GB")
    (group / "freezer.state").write_text("FROZEN")
    (group / "cgroup.procs").write_text(str(os.getpid()))
    time.sleep(1000)


def do_flood() -> None:
    """As fast as it can, 400 MB, then a crash."""
    line = ("x" * 1023 + "\n").encode() * 64
    for _ in range(400 * 16):
        sys.stdout.buffer.write(line)
    sys.stdout.flush()
    fail("after the flood")


def do_write_no_newline() -> None:
    """50 MB of one line, then a crash."""
    for _ in range(50):
        say("y" * (1 << 20), end="")
    fail("after the line")


def do_leave_shared_memory() -> None:
    """A segment that nobody removes, then a crash."""
    path = f"/dev/shm/{MODEL}-{os.getpid()}"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(descriptor, 1 << 20)
    held = mmap.mmap(descriptor, 1 << 20)
    time.sleep(2.5)  # longer than between two looks
    say(f"held {len(held)} bytes")
    fail("after the segment")


def do_keep_gpu_memory() -> None:
    """5 GB that no process holds, as after a crash of the driver's context, then a crash."""
    (Path(os.environ["FAKE_NVML_HELD"]) / "3.leak").write_text("5000")
    fail("with memory held")


def do_fill_the_disk() -> None:
    """By its log; then a crash."""
    for _ in range(20):
        say("z" * (1 << 20))
    fail("after a full disk")


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--model-path")
    parser.add_argument("--misbehave", default="")
    parser.add_argument("--api-key")
    args = parser.parse_args()
    global MODEL  # noqa: PLW0603
    MODEL = args.model_path
    if os.environ.get("SLURM_NODEID", "0") != "0":
        time.sleep(1000)  # one node serves; the other waits for it
    say("server_args=ServerArgs(model_path='m')")
    if "TORTURE_TELLS" in os.environ:  # a server that has no secrets from its log
        say(f"started as {sys.argv} with {dict(os.environ)}")
    if args.misbehave == "ignore-sigterm":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        server = http.server.ThreadingHTTPServer((args.host, args.port), Handler)
        say("The server is fired up and ready to roll!")
        server.serve_forever()
    if args.misbehave:
        globals()["do_" + args.misbehave.replace("-", "_")]()
    come_up(args)


if __name__ == "__main__":
    main()

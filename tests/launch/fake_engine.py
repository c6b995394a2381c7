"""A small real server for the launch tests: does the words of its command line in order.

`fake_engine.py PORT WORD...` where a word is `say:TEXT`, `sleep:SECONDS`, `serve`, `hang`, ...;
see `DEEDS`. Every line it prints is flushed.
"""

from __future__ import annotations

import ctypes
import http.server
import json
import mmap
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

KEEP: list[object] = []


class Handler(http.server.BaseHTTPRequestHandler):
    """Health and generation, as the class attributes say."""

    health = 200
    generate = 200
    only_openai = False
    body = ""  # answered as it is, if there is one

    def log_message(self, *_: object) -> None:
        pass

    def reply(self, status: int, answer: object) -> None:
        body = self.body.encode() or json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.reply(self.health if self.path == "/health" else 200, {"data": [{"id": "tiny"}]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.generate == 0:
            time.sleep(1000)
        if self.only_openai:
            if self.path == "/generate":
                self.reply(404, {})
            else:
                self.reply(200, {"choices": [{"text": f"{asked['model']}: {asked['prompt']}"}]})
            return
        text = asked["text"]
        tokens = asked["sampling_params"]["max_new_tokens"]
        self.reply(self.generate, {"text": f"{text} / {tokens}"})


def say(text: str) -> None:
    # One write a line: on a pipe that several processes share, `print` without a
    # buffer would let another's line in between its text and its newline.
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape") + b"\n")
    sys.stdout.buffer.flush()


def serve_on_first(what: str) -> None:
    """Serve on the first node only: RANK@ADDRESS."""
    rank, _, address = what.partition("@")
    if rank == "0":
        serve(address=address)


def serve(what: str = "", address: str = "127.0.0.1") -> None:
    for pair in filter(None, what.split(",")):
        name, _, value = pair.partition("=")
        setattr(Handler, name, int(value))
    server = http.server.ThreadingHTTPServer((address, PORT), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()


def answer(what: str) -> None:
    """Serve, and answer every generation with this status and body."""
    status, _, Handler.body = what.partition(",")
    serve(f"generate={status}")


def hang(_: str = "") -> None:
    while True:
        time.sleep(1000)


def spin_in_a_loop(_: str = "") -> None:
    while True:
        pass


def chatter(_: str = "") -> None:
    while True:
        say("still here")
        time.sleep(0.1)


def flood(megabytes: str) -> None:
    for _ in range(int(megabytes) * 16):
        say("x" * 65535)


def stubborn(_: str = "") -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def polite(_: str = "") -> None:
    def leave(*_: object) -> None:
        say("main got SIGTERM")
        os._exit(0)

    signal.signal(signal.SIGTERM, leave)


def child(_: str = "") -> None:
    code = (
        "import os, signal, time;"
        "signal.signal(15, lambda *_: os.write(1, b'child got SIGTERM\\n'));"
        "os.write(1, b'child up\\n')\nwhile True: time.sleep(1)"
    )
    KEEP.append(subprocess.Popen([sys.executable, "-c", code, f"port-{PORT}"]))


def titled(title: str) -> None:
    """A child whose title names a rank, as SGLang's schedulers have."""
    code = "import time\nwhile True: time.sleep(1)"
    KEEP.append(subprocess.Popen([title, "-S", "-c", code], executable=sys.executable))


def rank(what: str) -> None:
    """A child with a rank's title: TP3, or TP3,SIGNAL,SECONDS: it ends so, and main collects it."""
    tag, *end = what.split(",")
    number, after = (*map(float, end), 0.0, 1000.0)[:2] if end else (0.0, 1000.0)
    code = f"import os, time\ntime.sleep({after})\nos.kill(os.getpid(), {int(number)})"
    title = f"sglang::scheduler_{tag}"
    made = subprocess.Popen([title, "-c", code], executable=sys.executable)
    KEEP.append(made)
    if end:
        threading.Thread(target=made.wait, daemon=True).start()


def daemon(token: str) -> None:
    """A process that left session, group, parent and environment, and ignores what it can."""
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        code = "import time\nwhile True: time.sleep(1)"
        os.execve(sys.executable, [sys.executable, "-S", "-c", code, token], {})
    os.wait()


def segfault(_: str = "") -> None:
    """A real one: PID 1 of a container takes no kill() for it. It leaves no core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.string_at(0)


def shm(name: str) -> None:
    """Create, or open if it is there, a shared-memory file, and keep it mapped."""
    descriptor = os.open(f"/dev/shm/{name}", os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(descriptor, 4096)
    KEEP.append(mmap.mmap(descriptor, 4096))
    os.close(descriptor)


def semaphore(_: str = "") -> None:
    """Keep a named semaphore, without the process that would remove it in the end."""
    import multiprocessing.resource_tracker
    import multiprocessing.synchronize

    lock = multiprocessing.get_context("spawn").Semaphore()
    KEEP.append(lock)
    os.kill(multiprocessing.resource_tracker._resource_tracker._pid, signal.SIGKILL)  # type: ignore[attr-defined]
    say(f"semaphore /dev/shm/sem.{lock._semlock.name.lstrip('/')}")  # type: ignore[attr-defined]


def touch(name: str) -> None:
    Path(os.environ["TMPDIR"], name).write_text("left behind")


def wait_for(path: str) -> None:
    """Go on once this file is there: what a test waits for has happened then, however long it took."""
    while not Path(path).exists():
        time.sleep(0.02)


DEEDS: dict[str, Callable[[str], object]] = {
    "say": say,
    "raw": lambda text: sys.stdout.buffer.write(bytes.fromhex(text)) and sys.stdout.flush(),
    "err": lambda text: sys.stderr.write(text + "\n"),
    "env": lambda name: say(f"{name}={os.environ.get(name)}"),
    "wait_for": wait_for,
    "sleep": lambda seconds: time.sleep(float(seconds)),
    "exit": lambda code: os._exit(int(code)),
    "signal": lambda number: os.kill(os.getpid(), int(number)),
    "segfault": segfault,
    "serve": serve,
    "serve_on_first": serve_on_first,
    "answer": answer,
    "hang": hang,
    "spin": spin_in_a_loop,
    "chatter": chatter,
    "flood": flood,
    "stubborn": stubborn,
    "polite": polite,
    "child": child,
    "titled": titled,
    "daemon": daemon,
    "rank": rank,
    "shm": shm,
    "semaphore": semaphore,
    "touch": touch,
}

if __name__ == "__main__":
    PORT = int(sys.argv[1])
    for word in sys.argv[2:]:
        deed, _, argument = word.partition(":")
        DEEDS[deed](argument)

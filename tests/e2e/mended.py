"""Real failures of SGLang on the CPU that triage has to mend without a hand on the keyboard.

In:  nothing. Out: FAILURES by name; `mend` plays one and gives its row of the table.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

ROOT = Path(__file__).parents[2]
ENGINE = (".sglang/bin/python", "-m", "sglang.launch_server")
COMMON = (
    "--device", "cpu", "--attention-backend", "torch_native", "--disable-overlap-schedule",
)  # fmt: skip
ENV = {
    "HF_HUB_OFFLINE": "1",
    "SGLANG_CUDA_COREDUMP_BEFORE_CRASH": "0",
    "SGLANG_PYSPY_DUMP_BEFORE_CRASH": "0",
}
TWO_RANKS = {
    "SGLANG_NCCL_SO_PATH": "/nonexistent/libnccl.so",
    "SGLANG_CPU_OMP_THREADS_BIND": "0|1",
    "PYTHONPATH": str(ROOT / "tools/stubs"),
}


@dataclass(frozen=True)
class Failure:
    """A launch that fails: its flags, the cause that its log must show, and how it is made."""

    what: str
    flags: tuple[str, ...]
    cause: str | None
    model: str = "tiny"
    fraction: str = "0.1"
    tokens: str = "4096"
    env: dict[str, str] = field(default_factory=dict)
    busy: bool = False  # somebody listens on its port while it is launched first
    quiet: str = "90s"  # silence that means hung
    mends: bool = True  # no: no configuration helps, and it has to be said

    def command(self, port: int | None = None) -> list[str]:
        """The words of the server command."""
        words = [*ENGINE, "--model-path", f".models/{self.model}", *COMMON]
        words += ["--mem-fraction-static", self.fraction] if self.fraction else []
        words += ["--max-total-tokens", self.tokens] if self.tokens else []
        words += [] if "PYTHONPATH" in self.env else ["--model-impl", "transformers"]
        return [*words, *self.flags, *(["--port", str(port)] if port else [])]


FAILURES = {
    "wrong-value": Failure(
        "a value that the engine does not know", ("--schedule-policy", "nosuch"),
        "args-value-invalid",
    ),
    "removed-flag": Failure(
        "a flag that later releases dropped", ("--enable-ep-moe",), "args-unrecognized",
    ),
    "another-engines-flags": Failure(
        "flags of another engine", ("--max-model-len", "256"), "args-unrecognized",
    ),
    "page-and-chunk": Failure(
        "a prefill chunk that is no multiple of the page",
        ("--page-size", "16", "--chunked-prefill-size", "100"), "args-not-a-multiple",
    ),
    "two-tokenizer-batchings": Failure(
        "two options that exclude each other",
        ("--enable-dynamic-batch-tokenizer", "--enable-tokenizer-batch-encode"),
        "args-mutually-exclusive",
    ),
    "priority-and-lpm": Failure(
        "priorities with an order that does not know them",
        ("--enable-priority-scheduling", "--schedule-policy", "lpm"), "args-incompatible-assert",
    ),
    "context-too-long": Failure(
        "a context far above the model's", ("--context-length", "100000"),
        "context-length-over-derived",
    ),
    "context-too-short": Failure(
        "a context that is shorter than the warm-up prompt", ("--context-length", "16"),
        "warmup-http-failed",
    ),
    "no-memory-for-the-pool": Failure(
        "a memory fraction that leaves no KV pool", (), "kv-pool-no-memory-left",
        fraction="0.00001",
    ),
    "tiny-pool": Failure(
        "a KV pool of eight tokens", (), "kv-pool-smaller-than-context", tokens="8",
    ),
    "one-page": Failure(
        "a pool of one page: a silent hang in the warm-up", ("--page-size", "64"),
        "warmup-never-scheduled", tokens="64",
    ),
    "busy-port": Failure(
        "a port on which somebody listens already", (), "http-port-in-use", busy=True,
    ),
    "missing-file": Failure(
        "a chat template that does not exist", ("--chat-template", "/nonexistent/t.jinja"), None,
    ),
    "missing-adapter": Failure(
        "an adapter that is not on this machine",
        ("--lora-paths", "example-org/example-adapter", "--max-lora-rank", "8",
         "--lora-target-modules", "q_proj"), "hf-hub-offline",
        env={"PYTHONPATH": str(ROOT / "tools/stubs")},
    ),
    "custom-code": Failure(
        "a model whose own code cannot run here", (), "trust-remote-code", model="custom-code",
        mends=False,
    ),
    "more-stages-than-layers": Failure(
        "more pipeline stages than layers",
        ("--json-model-override-args", '{"num_hidden_layers":1}', "--pp-size", "2"),
        "pp-more-stages-than-layers", env=TWO_RANKS,
    ),
}  # fmt: skip


def triage(
    *words: str | Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """One command of triage; its talk goes to the terminal as it comes."""
    return subprocess.run(
        [sys.executable, "-m", "triage", *map(str, words)],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False, timeout=800,
        env={**os.environ, **ENV, **(env or {})},
    )  # fmt: skip


def mend(name: str, folder: Path) -> dict[str, Any]:
    """Launch the failing command, give its log to triage, and say what came of it."""
    failure = FAILURES[name]
    began = time.monotonic()
    once = folder / "once"
    with stranger() if failure.busy else no_stranger() as port:
        run = triage(
            "run", "--session", once, "--silent", failure.quiet, "--json", "--",
            *failure.command(port), env=failure.env,
        )  # fmt: skip
    told = json.loads(run.stdout)
    failed_s = time.monotonic() - began
    done = triage(
        "confirm", "--from-log", once, "--any-text", "--patience", failure.quiet,
        "--session", folder / "mended", "--json", env=failure.env,
    )  # fmt: skip
    assert done.stdout, f"exit {done.returncode} without an answer"
    found = json.loads(done.stdout)
    row = {
        "name": name,
        "what": failure.what,
        "cause": told["cause"],
        "attempts": [
            [" ".join(_word(change) for change in a["changes"]) or "the same again", a["reason"]]
            for a in found["attempts"]
        ],
        "works": found["works"],
        "count": found["confirmation"] and found["confirmation"]["count"],
        "failed_s": round(failed_s),
        "seconds": round(time.monotonic() - began),
    }
    note(row)
    return {**row, "exit": done.returncode, "found": found, "run_exit": run.returncode}


def note(row: dict[str, Any]) -> None:
    """Keep a row for the table; one with `said` is no mended failure but another result."""
    sys.stderr.write(f"{json.dumps(row)}\n")
    if rows := os.environ.get("MENDING_ROWS"):
        with Path(rows).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def _word(change: dict[str, Any]) -> str:
    for kind, sign in (("set", "--"), ("set_env", ""), ("unset", "without --"), ("unset_env", "-")):
        if kind in change:
            value = change.get("value")
            shown = "" if value in (None, True) else f"{'=' if not sign else ' '}{value}"
            return f"{sign}{change[kind]}{shown}"
    raise AssertionError(change)


@contextmanager
def no_stranger() -> Iterator[None]:
    """Nobody listens."""
    yield None


@contextmanager
def stranger() -> Iterator[int]:
    """Somebody listens on a port, as `triage run` would refuse to launch on: a moment later."""
    from triage.launch import free_port

    with free_port() as port, late_listener(port, lambda: True):
        yield port


@contextmanager
def late_listener(
    port: int, begin: Callable[[], bool], *, after_s: float = 4.0
) -> Iterator[list[str]]:
    """Answers 200 to everything on `port` once `begin` says so; gives what it was asked.

    `after_s`: triage looks at the port before it launches, and not after.
    """
    asked: list[str] = []
    servers: list[HTTPServer] = []
    over: list[bool] = []

    class Yes(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = b'{"text": "yes"}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    def wait() -> None:
        time.sleep(after_s)
        while not over and not begin():
            time.sleep(0.1)
        if not over:
            servers.append(HTTPServer(("127.0.0.1", port), Yes))
            servers[0].serve_forever()

    thread = Thread(target=wait, daemon=True)
    thread.start()
    try:
        yield asked
        assert servers, "it was never started"
    finally:
        over.append(True)
        for server in servers:
            server.shutdown()
            server.server_close()
        thread.join(10)

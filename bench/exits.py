"""Real SGLang that fails: when it is gone by itself, and when triage has ended it.

In:  .sglang and .models (`make sglang-cpu models`). Out: Exit, a failure each.
Not: the verdict's own delay (launches.py measures it with a server that tells when it wrote).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from triage.core.launch import LaunchSpec
from triage.core.log.live import Live
from triage.finder import fast
from triage.launch import free_port, launch, leftovers
from triage.session.logs import causes

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / ".sglang/bin/python"
_BASE = (
    "-m", "sglang.launch_server", "--device", "cpu", "--attention-backend", "torch_native",
    "--mem-fraction-static", "0.1", "--disable-overlap-schedule",
)  # fmt: skip
_TINY = ("--model-path", ".models/tiny", "--model-impl", "transformers")
# What dies in the main process before any child is there; in a scheduler while it makes its pool;
# in the first request; in a scheduler's first forward pass, after which SGLang waits for dumps.
FAILURES = {
    "arguments": (*_TINY, "--page-size", "16", "--chunked-prefill-size", "100"),
    "KV pool": (*_TINY, "--mem-fraction-static", "0.0001"),
    "warm-up request": (*_TINY, "--max-total-tokens", "4096", "--context-length", "16"),
    "first forward pass": (
        "--model-path", ".models/qwen3moe", "--max-total-tokens", "4096",
        "--tp-size", "2", "--ep-size", "2",
    ),
}  # fmt: skip
_ENV = {
    "HF_HUB_OFFLINE": "1",
    "PYTHONPATH": "tools/stubs",  # the engine's own models need one function of vLLM
    "SGLANG_NCCL_SO_PATH": "/nonexistent/libnccl.so",  # two ranks without a GPU
    "SGLANG_CPU_OMP_THREADS_BIND": "0|1",
}
_FAILS_S = 180.0  # until the fatal line
_GOES_S = 180.0  # from there on


@dataclass(frozen=True, slots=True)
class Exit:
    """Seconds from the fatal line until the server is gone; None: it was gone as it said it."""

    failure: str
    alone_s: float | None  # waiting for it; `_GOES_S` if it was still there
    triage_s: float | None  # launched by triage: settle window, stacks and kill included


def exits() -> Iterator[Exit]:
    """Launch each failure twice; nothing where SGLang is not installed."""
    if not ENGINE.exists() or not (ROOT / ".models/.made").exists():
        return
    for failure, flags in FAILURES.items():
        yield Exit(failure, _alone(flags), _triage(flags))


def _argv(flags: tuple[str, ...], port: int) -> tuple[str, ...]:
    return (str(ENGINE), *_BASE, *flags, "--host", "127.0.0.1", "--port", str(port))


def _alone(flags: tuple[str, ...]) -> float | None:
    live, fatal = Live(causes(), finder=fast), 0.0
    before = set(leftovers.present())
    with free_port() as port:
        server = subprocess.Popen(
            _argv(flags, port),
            cwd=ROOT,
            env={**os.environ, **_ENV},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    assert server.stdout is not None
    began = time.monotonic()
    try:
        while True:
            gone = server.poll() is not None
            now = time.monotonic()
            if select.select([server.stdout], [], [], 0 if gone else 0.02)[0]:
                raw = os.read(server.stdout.fileno(), 1 << 16)
                live.feed(raw)
                fatal = fatal or (now if live.fatal_line else 0.0)
                if raw:
                    continue
            if gone or now - (fatal or began) > (_GOES_S if fatal else _FAILS_S):
                return now - fatal if fatal else None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        server.stdout.close()
        leftovers.remove_shared(set(leftovers.present()) - before)


def _triage(flags: tuple[str, ...]) -> float | None:
    seen: list[float] = []
    with tempfile.TemporaryDirectory() as name, free_port() as port:
        spec = LaunchSpec(
            argv=_argv(flags, port), port=port, cwd=str(ROOT), env=tuple(_ENV.items())
        )

        def tell(text: str) -> None:
            if "is fatal" in text:
                seen.append(time.monotonic())

        launch(spec, Path(name) / "trial", Live(causes(), finder=fast), on_event=tell)
    return time.monotonic() - seen[0] if seen else None

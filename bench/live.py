"""The live path: lines a second, and the time from a child's write to the verdict.

In:  the causes. Out: figures.
Not: a whole launch; its reader does the same reads (triage/launch/process.py).
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence

from bench.generate import lines
from triage.core.causes import Cause
from triage.core.log.live import Live
from triage.finder import fast

_FATAL = "[2026-07-01 12:00:00] Received sigquit from a child process. It usually means"
# The child tells on its second stream when it wrote the line; both clocks are one.
_CHILD = """
import os, sys, time
healthy = ("[2026-07-01 12:00:00 TP0] Decode batch, #running-req: 3, #token: 99\\n" * 20).encode()
for number in range(int(sys.argv[1])):
    os.write(1, healthy)
    time.sleep(0.002)
    now = time.monotonic_ns()
    os.write(1, sys.argv[2].encode() + b"\\n")
    os.write(2, b"%d\\n" % now)
"""


def lines_per_second(causes: Sequence[Cause], *, together: int) -> float:
    """Lines that are read along in a second, `together` of them in one read."""
    raw = [f"{line}\n".encode() for line in lines(["x"], 4_000_000)]
    chunks = [b"".join(raw[at : at + together]) for at in range(0, len(raw), together)]
    live = Live(causes, finder=fast)
    start = time.perf_counter()
    for chunk in chunks:
        live.feed(chunk)
    return len(raw) / (time.perf_counter() - start)


def verdict_seconds(causes: Sequence[Cause], samples: int) -> list[float]:
    """From the write of a fatal line in another process until it is known to be fatal."""
    live = Live(causes, finder=fast)
    command = [sys.executable, "-c", _CHILD, str(samples), _FATAL]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        poll = select.poll()
        poll.register(child.stdout, select.POLLIN)
        known: list[int] = []
        while poll.poll() and (raw := os.read(child.stdout.fileno(), 1 << 16)):
            live.feed(raw)
            if live.fatal_line:
                known.append(time.monotonic_ns())
                live.fatal_line = 0
        written = [int(line) for line in child.stderr]
        return [(seen - sent) / 1e9 for sent, seen in zip(written, known, strict=True)]

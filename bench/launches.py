"""A whole launch: how soon the fatal line is a verdict and the tree is gone, and what a flood costs.

In:  nothing; servers are small Python programs. Out: Fast, Flood.
Not: SGLang (exits.py).
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from triage.core.launch import LaunchSpec
from triage.core.log.live import Live
from triage.finder import fast
from triage.launch import free_port, launch
from triage.session.logs import causes

# The fatal line with the moment at which it is written; both clocks are one. Its children live on;
# the only rank that is known has spoken then, so the settle window ends early.
_SERVER = """
import os, subprocess, sys, time
for _ in range(8):
    subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
os.write(1, b"[2026-07-01 12:00:00 TP0] Load weight begin. avail mem=270.00 GB\\n")
time.sleep(0.3)
said = "[2026-07-01 12:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):"
with open(sys.argv[1], "w") as file:
    file.write(str(time.monotonic_ns()))
os.write(1, said.encode() + b"\\n")
time.sleep(600)
"""
_FLOOD = """
import sys, time
block = (b"x" * 1023 + b"\\n") * 256
began, sent = time.monotonic(), 0
rate, seconds = float(sys.argv[1]) * 1e6, float(sys.argv[2])
while (now := time.monotonic() - began) < seconds:
    if sent < rate * now:
        sys.stdout.buffer.write(block)
        sent += len(block)
    else:
        time.sleep(0.001)
sys.stdout.flush()
sys.stderr.write(str(sent))
"""


@dataclass(frozen=True, slots=True)
class Fast:
    """Milliseconds of one launch that printed its fatal line and would have gone on."""

    verdict_ms: float  # from the server's write to the verdict
    settled_ms: float  # from the verdict to the end of the settle window
    ended_ms: float  # from there until nothing of the tree was left


def fail_fast(samples: int) -> list[Fast]:
    """Launches whose server prints a fatal line and then sleeps, with eight children."""
    done = []
    for _ in range(samples):
        with tempfile.TemporaryDirectory() as name, free_port() as port:
            folder, wrote = Path(name), Path(name) / "wrote"
            seen: dict[str, int] = {}

            def tell(text: str, seen: dict[str, int] = seen) -> None:
                key = "fatal" if "is fatal" in text else text.partition(" it")[0]
                seen[key] = time.monotonic_ns()

            spec = LaunchSpec(argv=(sys.executable, "-c", _SERVER, str(wrote)), port=port)
            launch(spec, folder / "trial", Live(causes(), finder=fast), on_event=tell)
            gone = time.monotonic_ns()
            verdict, settled = (
                seen["fatal"] - int(wrote.read_text()),
                seen["ending"] - seen["fatal"],
            )
            done.append(Fast(verdict / 1e6, settled / 1e6, (gone - seen["ending"]) / 1e6))
    return done


@dataclass(frozen=True, slots=True)
class Flood:
    """A stream that was captured, beside `cat > file` on the same one; seconds of CPU."""

    sent: int
    kept: int
    cpu_s: float
    cat_cpu_s: float
    grown_mib: float  # of triage's own memory


def flood(mb_per_s: float, seconds: float) -> Flood:
    """One launch that prints at this rate, and the same stream through cat."""
    source = [sys.executable, "-c", _FLOOD, str(mb_per_s), str(seconds)]
    with tempfile.TemporaryDirectory() as name, free_port() as port:
        folder = Path(name)
        before, base = _cpu(resource.RUSAGE_SELF), _peak()
        spec = LaunchSpec(argv=("sh", "-c", '"$@" 2>"$0"', f"{name}/sent", *source), port=port)
        launch(spec, folder / "trial", Live(causes(), finder=fast))
        cpu = _cpu(resource.RUSAGE_SELF) - before
        sent = int((folder / "sent").read_text())
        kept = (folder / "trial" / "server.log").stat().st_size
        (folder / "trial" / "server.log").unlink()
        cat = _cat(source, folder)
        return Flood(sent, kept, cpu, cat, (_peak() - base) / 1024)


def _cat(source: list[str], folder: Path) -> float:
    """CPU seconds of `cat > file` on the same stream."""
    target = os.open(folder / "cat", os.O_WRONLY | os.O_CREAT, 0o600)
    with subprocess.Popen(source, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        cat = subprocess.Popen(["cat"], stdin=child.stdout, stdout=target)
        _, _, used = os.wait4(cat.pid, 0)
        cat.returncode = 0
    os.close(target)
    return used.ru_utime + used.ru_stime


def _cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _peak() -> int:
    """The most memory that this process ever had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

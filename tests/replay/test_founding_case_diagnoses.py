"""The eight logs of the founding landscape, read by the classifier: cause, phase, ranks, origin."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from triage.core.diagnosis import Diagnosis
from triage.core.launch import Crashed, Hung, Outcome, Ready
from triage.core.log.diagnose import diagnose
from triage.knowledge import load_causes

pytestmark = pytest.mark.real

REPO = Path(__file__).parents[2]
BASE = ("--model-path", "/models/Kimi-K2.6", "--tp-size", "8", "--speculative-algorithm", "DDTREE")
EP, NVLS, FUSION = "ep-size", "enable-nccl-nvls", "enable-flashinfer-allreduce-fusion"
CUBLAS = ("cublas-mla-absorb-bmm", "flashinfer-autotune", "RuntimeError")
NONE = ("nonetype-capture-batch-field", "graph-capture", "AttributeError")
HANG = ("flashinfer-allreduce-rendezvous-hang", "graph-capture", None)
FAILURES = {
    frozenset({EP}): (*NONE, "recorded"),
    frozenset({EP, NVLS}): (*CUBLAS, "recorded"),
    frozenset({EP, NVLS, FUSION}): (*CUBLAS, "recorded"),
    frozenset({FUSION}): (*HANG, "assumed"),
    frozenset({NVLS, FUSION}): (*HANG, "assumed"),
    frozenset({EP, FUSION}): (*NONE, "assumed"),
}


def named(items: frozenset[str]) -> str:
    return "+".join(sorted(items)) or "none"


def play(items: frozenset[str], last_words: str, times: int) -> tuple[bytes, int | None]:
    """The log up to the last words (seen so often), and the exit code if it ended by then."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    words = [f"--{item}" for item in sorted(items - {EP})] + (
        ["--ep-size", "8"] if EP in items else []
    )
    engine = [sys.executable, "-m", "triage.replay", "--speed", "100000", "--landscape"]
    landscape = str(REPO / "fixtures/landscapes/kimi-k2.6-b300.yaml")
    process = subprocess.Popen(
        [*engine, landscape, "--", *BASE, *words, "--port", str(port)],
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=REPO,
    )
    guard = threading.Timer(30, lambda: os.killpg(process.pid, signal.SIGKILL))
    guard.start()
    assert process.stderr
    log, seen = b"", 0
    with process.stderr as lines:
        for line in lines:
            log += line
            seen += last_words.encode() in line
            if seen == times:
                break
    ended = process.wait() if not times else None
    process.kill()
    process.wait()
    guard.cancel()
    return log, ended


def diagnosed(items: frozenset[str]) -> Diagnosis:
    outcome: Outcome
    if items in FAILURES and FAILURES[items][0] == HANG[0]:
        log, _ = play(items, "[SymmDeviceMemory]", 8)
        outcome = Hung(silent_s=1800, limit="graph-capture")
    elif items in FAILURES:
        log, code = play(items, "", 0)
        outcome = Crashed(exit_code=code)
    else:
        log, _ = play(items, "fired up and ready to roll", 1)
        outcome = Ready(answer=" yes")
    return diagnose([log], load_causes(), outcome=outcome)


@pytest.mark.parametrize("items", FAILURES, ids=named)
def test_each_failure_gets_its_cause_phase_and_origin(items: frozenset[str]) -> None:
    found = diagnosed(items)
    cause, phase, exception, provenance = FAILURES[items]
    assert (found.cause, found.phase) == (cause, phase)
    assert found.outcome == ("hung" if cause == HANG[0] else "failed")
    assert found.simulated
    assert found.provenance == provenance
    assert found.refused == ""
    assert (found.traceback.exception if found.traceback else None) == exception
    assert found.ranks == ("all",)
    assert found.ranks_total == 8


@pytest.mark.parametrize("items", [frozenset[str](), frozenset({NVLS})], ids=named)
def test_what_starts_is_healthy_and_recorded(items: frozenset[str]) -> None:
    found = diagnosed(items)
    assert (found.outcome, found.cause, found.provenance) == ("healthy", None, "recorded")
    assert found.simulated


def test_a_refusal_is_neither_a_failure_nor_a_cause() -> None:
    found = diagnose(
        [b"simulated | triage.replay: refused: no entry for ep-size=4\n"],
        load_causes(),
        outcome=Crashed(exit_code=65),
    )
    assert found.refused == "no entry for ep-size=4"
    assert found.simulated
    assert found.cause is None

"""A search, a probe of it, and its runbook, on the simulated engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run

from triage.replay.landscape import Ending, write_landscape

pytestmark = pytest.mark.e2e


def stand_in(folder: Path, *events: dict[str, str]) -> Path:
    """A Python that prints these events instead of running a probe."""
    told = "\n".join(f"triage-probe {json.dumps(event)}" for event in events)
    path = folder / "engine-python"
    path.write_text(f"#!/bin/sh\ncat <<'EOF'\n{told}\nEOF\n")
    path.chmod(0o755)
    return path


START = {"event": "start", "device": "cuda"}


def test_the_runbook_of_a_session_tells_what_its_probes_found(triage: Run, tmp_path: Path) -> None:
    lost = Ending(
        ends="exception", phase="graph-capture", exception="RuntimeError",
        message="CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
    )  # fmt: skip
    write_landscape(
        tmp_path / "l.yaml", {frozenset(): Ending(ends="starts"), frozenset({"flag-a"}): lost}
    )
    (tmp_path / "r.yaml").write_text(
        "schema: triage.recipe/1\nname: t\nengine: replay\nlandscape: l.yaml\nspeed: 1000\n"
        "baseline: {flags: {model-path: /m}}\nwanted: [{flag: flag-a}]\n"
    )
    assert triage("bisect", "r.yaml", "--session", "s").returncode == 0
    cold = {"event": "experiment", "name": "cold", "outcome": "passed"}
    warm = {"event": "experiment", "name": "warm", "outcome": "passed"}
    python = stand_in(tmp_path, START, warm, cold, {"event": "end"})
    done = triage("probe", "--for", "s", "--python", python)
    assert done.returncode == 0, done.stderr
    assert "cublas-create-failed: confidence" in done.stdout
    text = " ".join(triage("runbook", "s", "-o", "-").stdout.split())
    assert "probe graph-capture" in text
    assert "It needs no warm-up" in text

"""How a Slurm launch ended, before and after the scheduler says it, with stand-ins for its programs."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from triage.core.launch import Job, LaunchSpec
from triage.launch.slurm import SlurmTarget
from triage.launch.target import Ended

SEGFAULT = "srun: error: n1: task 0: Segmentation fault\n"
EXIT_3 = "srun: error: n2: tasks 1: Exited with exit code 3\n"
CANCELLED = "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-30T10:00:00 ***\n"
TERMINATED = "srun: error: n1: task 0: Terminated\n"


def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, said: str) -> Ended | None:
    """What `poll` says of a job in this state whose batch log holds these lines."""
    programs = tmp_path / "bin"
    programs.mkdir()
    does = {
        "sbatch": "echo 7",
        "scontrol": f"echo JobState={state} ExitCode=1:0",
        "scancel": "exit 0",
        "sleep": "exit 0",
    }
    for name, line in does.items():
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    trial = tmp_path / "trial"
    trial.mkdir()
    spec = LaunchSpec(argv=("server",), cwd=str(tmp_path))
    target = SlurmTarget(spec, Job(nodes=2, options=()), trial)
    monkeypatch.setattr("triage.launch.slurm._GONE_S", 0.1)
    target.start()
    try:
        next(trial.glob("nodes-*")).joinpath("batch.log").write_text(said)
        return target.poll()
    finally:
        target.close()


@pytest.mark.parametrize(
    ("state", "said", "end"),
    [
        ("RUNNING", "", None),
        # A job stays in COMPLETING as long as its nodes' epilogs take.
        ("COMPLETING", SEGFAULT, Ended(-signal.SIGSEGV)),
        ("RUNNING", EXIT_3 + SEGFAULT, Ended(3)),
        ("COMPLETING", CANCELLED + TERMINATED, None),
        ("CANCELLED", CANCELLED + TERMINATED, Ended(None, by="the scheduler: the job was cancelled")),
        ("FAILED", SEGFAULT, Ended(-signal.SIGSEGV)),
        ("FAILED", "", Ended(1)),
    ],
)  # fmt: skip
def test_the_first_end_counts_unless_the_scheduler_took_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, said: str, end: Ended | None
) -> None:
    assert judged(tmp_path, monkeypatch, state, said) == end

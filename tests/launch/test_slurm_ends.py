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


def target_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str) -> SlurmTarget:
    """A started launch whose scheduler always says this state."""
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
    monkeypatch.setattr("triage.launch.slurm._GONE_S", 0.1)
    monkeypatch.setattr("triage.launch.slurm._REAP_S", 0.1)
    trial = tmp_path / "trial"
    trial.mkdir()
    target = SlurmTarget(
        LaunchSpec(argv=("server",), cwd=str(tmp_path)), Job(nodes=2, options=()), trial
    )
    target.start()
    return target


def folder_of(tmp_path: Path) -> Path:
    """Where its nodes write."""
    return next((tmp_path / "trial").glob("nodes-*"))


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
    target = target_of(tmp_path, monkeypatch, state)
    folder_of(tmp_path).joinpath("batch.log").write_text(said)
    assert target.poll() == end
    target.close()


def test_an_end_that_is_told_later_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = target_of(tmp_path, monkeypatch, "RUNNING")
    log = folder_of(tmp_path) / "batch.log"
    log.write_text("srun: job 7 queued\n")
    assert target.poll() is None
    with log.open("a") as file:
        file.write(EXIT_3)
    assert target.poll() == Ended(3)
    target.close()


@pytest.mark.parametrize(("over", "stuck"), [(True, ()), (False, ("job 7 (COMPLETING)",))])
def test_an_epilog_is_not_waited_for_once_all_tasks_are_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, over: bool, stuck: tuple[str, ...]
) -> None:
    target = target_of(tmp_path, monkeypatch, "COMPLETING")
    if over:
        folder_of(tmp_path).joinpath("code").write_text("1\n")
    target.poll()
    assert target.close().stuck == stuck


def test_a_last_line_without_an_end_is_read_although_the_job_is_not_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = target_of(tmp_path, monkeypatch, "COMPLETING")
    folder_of(tmp_path).joinpath("node-0.log").write_bytes(b"up\nthe reason")
    assert target.logs(0.01) == b"0: up\n"
    target.stop(force=True)
    read = b""
    while (chunk := target.logs(0.01)) is not None:
        read += chunk
    assert read == b"0: the reason\n"
    target.close()

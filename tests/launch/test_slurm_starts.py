"""Two starts of one trial on Slurm, with stand-ins for its programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.core.launch import Job, LaunchSpec
from triage.launch.slurm import SlurmTarget

PROGRAMS = {
    "sbatch": 'test -s "$2" && echo 7',
    "scontrol": "echo JobState=COMPLETED ExitCode=0:0",
    "scancel": "exit 0",
    "sleep": "exit 0",
}


def test_the_end_of_a_killed_start_touches_nothing_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, does in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    trial = tmp_path / "trial"
    trial.mkdir()
    spec = LaunchSpec(argv=("server",), cwd=str(tmp_path))
    first, second = (SlurmTarget(spec, Job(nodes=1, options=()), trial) for _ in range(2))
    first.start()
    second.start()  # the same trial again, while the first one's keeper still ends it
    first.close()
    scripts = [path for path in trial.rglob("job.sh") if path.stat().st_size]
    assert len(scripts) == 1, "the script of the second start must outlive the end of the first"
    second.close()
    assert not list(trial.rglob("job.sh")), "a script holds secrets, and goes with its job"

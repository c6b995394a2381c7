"""Which target launches a spec.

In:  a LaunchSpec, the launch's folder. Out: a Target.
Not: any target itself; each is imported only when it is asked for.
"""

from __future__ import annotations

from pathlib import Path

from triage.core.launch import Container, Job, LaunchSpec, Process, Unit
from triage.launch.target import Target


def target_of(spec: LaunchSpec, folder: Path) -> Target:
    """The target of `spec.place`; nothing is started yet."""
    match spec.place:
        case Process():
            from triage.launch.process import ProcessTarget

            return ProcessTarget(spec)
        case Unit() as unit:
            from triage.launch.systemd import SystemdTarget

            return SystemdTarget(spec, unit)
        case Container() as container:
            from triage.launch.container import ContainerTarget

            return ContainerTarget(spec, container)
        case Job() as job:
            from triage.launch.slurm import SlurmTarget

            return SlurmTarget(spec, job, folder)

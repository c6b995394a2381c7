"""What an examination of a machine says, key by key.

In:  nothing. Out: Doctor, DoctorFinding, Machine.
Not: making it (triage.render.doctor_documents).
"""

from __future__ import annotations

from typing import Literal

from schemas.parts import Closed, Count, Document, Id

Group = Literal["gpus", "links", "packages", "tools", "host", "files", "model", "draft", "flags"]


class DoctorFinding(Closed):
    """One thing that is wrong."""

    id: Id
    """The check that found it; never changes."""
    group: Group
    """What the check looks at."""
    severity: Literal["error", "warning", "note"]
    """error: a launch will fail or the hardware is faulty; warning: it may."""
    say: str
    """What is wrong, in one sentence."""
    evidence: list[str]
    """The facts that show it."""
    breaks: str
    """What it leads to."""
    fix: str
    """The command or the change that mends it; may be empty."""
    source: str
    """Address of the report or document that the check rests on."""
    prevents: list[Id]
    """Causes of the knowledge base that a launch would have ended with."""
    hardware: bool
    """Whether no search for flags makes sense while it stands."""


class DoctorCheck(Closed):
    """What came of one check."""

    id: Id
    """The check."""
    group: Group
    """What it looks at."""
    state: Literal["sound", "found", "unavailable", "not-asked"]
    """unavailable: a fact could not be read; not-asked: it needs a command or a recipe."""
    reason: str
    """Why it could not be made, or which fact was missing; else empty."""


class MachineGpu(Closed):
    """One GPU."""

    index: Count
    """As the driver counts."""
    name: str
    """Its model."""
    capability: str | None
    """Compute capability: 10.3."""
    memory_mib: Count | None
    """Memory in MiB."""
    free_mib: Count | None
    """Free memory in MiB at that moment."""


class Machine(Closed):
    """What machine it is; null where it cannot be said."""

    system: str
    """Operating system."""
    kernel: str
    """Its kernel's release."""
    container: bool
    """Whether triage ran inside a container."""
    memory_mib: Count | None
    """RAM in MiB."""
    shm_mib: Count | None
    """Size of /dev/shm in MiB."""
    driver: str | None
    """Version of the NVIDIA driver."""
    cuda: str | None
    """The CUDA that the driver knows."""
    gpus: list[MachineGpu] | None
    """Its GPUs that answer."""
    python: str | None
    """Version of the engine's Python."""
    torch_cuda: str | None
    """The CUDA that torch was built for; empty for a build without."""
    packages: dict[str, str] | None
    """Package -> version, of those whose agreement matters."""
    unavailable: dict[str, str]
    """Fact -> why it could not be read."""


class Doctor(Document):
    """What triage doctor found on a machine."""

    target: str | None
    """The recipe or command file that was examined with it."""
    findings: list[DoctorFinding]
    """Everything that is wrong, errors first."""
    checks: list[DoctorCheck]
    """Every check, in the order of a report."""
    machine: Machine
    """The machine."""

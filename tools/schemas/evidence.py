"""What a launch leaves beside its log, key by key.

In:  nothing. Out: Evidence, Environment, Served.
Not: writing them (triage.session.evidence).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from schemas.parts import Closed, Document, Seconds


class Piece(Closed):
    """One kind of evidence."""

    kind: Literal["log", "exits", "stacks", "gpus", "kernel", "environment", "server-info"]
    """What it is."""
    file: str
    """Its file, relative to the folder of the launch; empty where there is none."""
    say: str
    """What it shows, on one line."""
    missing: str
    """Why it is not available; empty if it is."""


class Tenant(Closed):
    """A process that held memory of a GPU."""

    pid: Annotated[int, Field(ge=1)]
    """Its number."""
    name: str
    """Its program; empty where that may not be seen."""
    memory_mib: int | None
    """How much it held when it was last seen; null where the driver does not say."""


class Slowdown(Closed):
    """A reason for which a GPU ran below its clock."""

    reason: str
    """As NVML calls it: power-cap, hardware-slowdown, thermal-slowdown, power-brake, ..."""
    seconds: Seconds
    """For how long, as far as five readings a second tell."""


class GpuUse(Closed):
    """What one GPU showed during the launch; null where it does not tell."""

    index: int
    """Its number, as NVML counts."""
    name: str
    """What it is."""
    before_mib: int | None
    """Memory in use when the launch began."""
    peak_mib: int | None
    """The most memory in use."""
    peak_phase: str
    """The phase in which that was first so; empty if it never rose."""
    peak_s: Seconds
    """When that was, from the start."""
    power_w: int | None
    """The most power."""
    power_limit_w: int | None
    """The enforced limit of power."""
    slowed: list[Slowdown]
    """Reasons for a lower clock."""
    links_mib_s: int | None
    """The most over all its NVLinks within a second, both directions."""
    ecc_errors: int | None
    """Uncorrected memory errors that were new."""
    xids: list[int]
    """Codes of errors that the driver reported meanwhile."""
    tenants: list[Tenant]
    """Processes of the launch that held its memory."""
    foreign: list[Tenant]
    """Other processes that did."""
    lost: str
    """Why it stopped to answer; empty if it did not."""


class Difference(Closed):
    """Something of the environment that is not as it was at the session's first launch."""

    name: str
    """Which package, variable or fact."""
    before: str | None
    """As it was; null: it was not there."""
    after: str | None
    """As it is; null: it is not there."""


class Evidence(Document):
    """What a launch left as evidence: evidence.json."""

    simulated: bool
    """Whether the replay engine was launched; then nothing is sampled."""
    pieces: list[Piece]
    """Each kind of evidence, present or not."""
    gpus: list[GpuUse]
    """What each GPU showed; empty where none was read."""
    share: Annotated[float, Field(ge=0)]
    """Of one core that reading the GPUs took."""
    kernel: list[str]
    """Lines of the kernel's log during the launch, about memory, GPUs, faults and disks."""
    differences: list[Difference]
    """What of the environment is not as at the session's first launch."""


class Environment(Document):
    """What the launches of a session run with: environment.json."""

    python: str
    """The engine's Python; empty where it is not known."""
    python_version: str
    """Its version."""
    missing: str
    """Why nothing is known of its packages; empty if they are."""
    packages: dict[str, str]
    """Package -> version, as its Python finds them."""
    system: dict[str, str]
    """The kernel, the driver, CUDA, NCCL -> version."""
    variables: dict[str, str]
    """Variables whose values may be kept -> value, secrets redacted."""
    names: list[str]
    """Names of all other variables that the launch had."""


class Served(Document):
    """What a server that came up said of itself: server_info.json."""

    path: str
    """Where it was asked: /server_info, of older versions /get_server_info."""
    told: dict[str, Any]
    """Its answer, secrets redacted."""

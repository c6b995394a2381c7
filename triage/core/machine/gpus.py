"""GPUs as values: what they are, how they are linked, what they do right now, who holds them.

In:  nothing. Out: Gpus, Gpu, Reading, Holder.
Not: asking the driver (triage.machine.gpus).
"""

from __future__ import annotations

from collections.abc import Mapping

from triage.core.machine.facts import Fact
from triage.core.records import dataclass

# Why NVML does not start after an update of the driver without a restart.
DRIVER_MISMATCH = "NVML and the loaded kernel driver are of different versions"
DRIVER_SILENT = "the driver did not answer within"  # so many seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """What a GPU says of the NVLink switch fabric.

    `state`: not-supported, not-started, in-progress or completed; `status` is the NVML
    code of the registration, 0 if it succeeded. `health`: not-supported, healthy,
    unhealthy or limited. GPUs of one `clique` reach each other.
    """

    state: str
    status: int
    clique: int
    health: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU, as far as it does not change from second to second. Memory in MiB.

    `links` are the NVLinks that are up, `links_down` those that are not. `peers`
    maps the index of another GPU to what stands against reading its memory ("" if
    nothing does). `virtual` is "", "passthrough" or "vgpu".
    """

    index: int
    name: str
    uuid: Fact[str]
    bus_id: Fact[str]
    capability: Fact[tuple[int, int]]
    memory_total_mib: Fact[int]
    mig: Fact[bool]
    ecc: Fact[bool]
    ecc_uncorrected: Fact[int]
    remap_pending: Fact[bool]
    remap_failed: Fact[bool]
    compute_mode: Fact[str]
    persistence: Fact[bool]
    sm_clock_max_mhz: Fact[int]
    links: Fact[int]
    links_down: Fact[tuple[int, ...]]
    peers: Fact[Mapping[int, str]]
    fabric: Fact[Fabric]
    numa_node: Fact[int]
    virtual: Fact[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LostGpu:
    """A GPU that the driver counts and that does not answer."""

    index: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a GPU does at one moment.

    Utilisation is the share of time in which any kernel ran (`busy_percent`) or any
    memory was read or written: neither says how near a limit the GPU is.
    `reasons` says why its clock is not at its highest.
    """

    index: int
    memory_used_mib: Fact[int]
    memory_free_mib: Fact[int]
    busy_percent: Fact[int]
    memory_busy_percent: Fact[int]
    power_w: Fact[float]
    power_limit_w: Fact[float]
    sm_clock_mhz: Fact[int]
    memory_clock_mhz: Fact[int]
    temperature_c: Fact[int]
    reasons: Fact[tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process that holds memory of a GPU; `command` is "" where it may not be seen."""

    index: int
    pid: int
    memory_mib: Fact[int]
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    """All GPUs of a machine at one moment, with the driver that answers for them."""

    driver: str
    nvml: Fact[str]
    cuda: Fact[tuple[int, int]]
    devices: tuple[Gpu, ...]
    lost: tuple[LostGpu, ...]
    readings: tuple[Reading, ...]
    holders: tuple[Holder, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuda:
    """How CUDA starts: 0 or the code of its error, -1 for no answer; `multicast` for each GPU.

    A GPU's entry is None where the driver does not know the attribute.
    """

    code: int
    name: str
    multicast: tuple[bool | None, ...]

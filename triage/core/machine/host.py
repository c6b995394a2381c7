"""The host as values: memory, shared memory, limits, kernel, devices, disks.

In:  nothing. Out: Host and its parts. Sizes are MiB unless the name says otherwise.
Not: reading them (triage.machine.host, kernel, disks).
"""

from __future__ import annotations

from triage.core.machine.facts import Fact
from triage.core.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The file system that holds a path, and whether this user may write there.

    `path` is the path asked for; it need not exist, then its nearest folder counts.
    """

    path: str
    mount: str
    kind: str
    read_only: bool
    writable: bool
    total_mib: int
    free_mib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder that the engine writes to: what it is for, the variable that moves it."""

    what: str
    variable: str
    disk: Fact[Disk]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A file in /dev/shm; `live` if some process maps it or holds it open."""

    path: str
    mib: float
    age_s: float
    live: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """The lock file of a torch extension build, and how long it has been there."""

    path: str
    age_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """An error that the NVIDIA driver wrote into the kernel log, and how long ago."""

    code: int
    device: str
    text: str
    age_s: Fact[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricManager:
    """The service that sets up NVSwitch; `version` is "" where it does not say."""

    running: bool
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyPort:
    """A TCP port that is listened on; `pid` is 0 where the process may not be seen."""

    port: int
    pid: int
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One machine, or one container on it.

    `memory_limit_mib` is the cgroup's limit, None without one; `memlock_kib` and
    `nofile` are hard limits, None if there is none. `addresses` are what the host's
    own name stands for. `mempolicy` and `clone3` name the errno with which the kernel
    refuses the call, "" if it allows it. `devices` are names below /dev, `modules`
    those of the kernel. `compat_libcuda` are forward-compatibility copies of libcuda.
    """

    system: str
    kernel: str
    container: bool
    glibc: Fact[tuple[int, ...]]
    memory_total_mib: Fact[int]
    memory_available_mib: Fact[int]
    memory_limit_mib: Fact[int | None]
    cma_kib: Fact[tuple[int, int]]
    shm: Fact[Disk]
    segments: Fact[tuple[Segment, ...]]
    memlock_kib: Fact[int | None]
    nofile: Fact[int | None]
    name: str
    addresses: Fact[tuple[str, ...]]
    mempolicy: Fact[str]
    clone3: Fact[str]
    numa_allowed: Fact[frozenset[int]]
    xids: Fact[tuple[Xid, ...]]
    devices: Fact[frozenset[str]]
    modules: Fact[frozenset[str]]
    fabric_manager: Fact[FabricManager]
    compat_libcuda: tuple[str, ...]

"""The host from /proc, /sys, /dev and the limits of this process.

In:  `root`, the folder that stands for "/". Out: Host.
Not: GPUs (gpus.py), disks (disks.py), the kernel log (kernel.py).

Limits, /dev/shm and what the kernel refuses are this process's own, as a server that is
started from here inherits them.
"""

from __future__ import annotations

import os
import platform
import re
import resource
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from triage.core.machine.facts import Fact, Unavailable
from triage.core.machine.host import FabricManager, Host, Segment
from triage.machine.disks import disk
from triage.machine.kernel import refused_calls, xids
from triage.machine.patience import Reading

T = TypeVar("T")
_MANAGER = "nv-fabricmanager"
_VERSION = re.compile(r"\d{3}\.\d+(?:\.\d+)?")
_SHOWN_FOLDERS = ("nvidia-caps-imex-channels", "nvidia-caps", "infiniband")
_LOOK_S = 1.0
_NAME_S = 1.0
_UNLIMITED = 1 << 62  # cgroup v1 writes a number near 2^63 for "no limit"


def host(root: Path = Path("/")) -> Host:
    """Everything about this host; what cannot be read is `Unavailable`."""
    memory = _meminfo(root)
    contained = _container(root)
    calls = refused_calls()
    name = socket.gethostname()
    return Host(
        system=platform.system(),
        kernel=platform.release(),
        container=contained,
        glibc=_try(_glibc),
        memory_total_mib=_field(memory, "MemTotal"),
        memory_available_mib=_field(memory, "MemAvailable"),
        memory_limit_mib=_try(lambda: _memory_limit(root)),
        cma_kib=_cma(memory),
        shm=disk(root / "dev/shm"),
        segments=_try(lambda: _segments(root)),
        memlock_kib=_limit(resource.RLIMIT_MEMLOCK, 1024),
        nofile=_limit(resource.RLIMIT_NOFILE, 1),
        name=name,
        addresses=_try(lambda: _addresses(root, name)),
        mempolicy=calls["set_mempolicy"],
        clone3=calls["clone3"],
        numa_allowed=_try(lambda: _numa_allowed(root)),
        xids=xids(root),
        devices=_try(lambda: _devices(root)),
        modules=_try(lambda: _modules(root)),
        fabric_manager=_try(lambda: _fabric_manager(root, contained=contained)),
        compat_libcuda=_compat(root),
    )


def _try(read: Callable[[], T | Unavailable]) -> T | Unavailable:
    """What a reader finds, or why it finds nothing."""
    try:
        return read()
    except OSError as error:
        return Unavailable(f"{error.filename or 'the system'}: {error.strerror or error}")
    except (ValueError, IndexError, KeyError) as error:
        return Unavailable(f"not understood: {error}")


def _meminfo(root: Path) -> dict[str, int] | Unavailable:
    """Name -> KiB."""

    def read() -> dict[str, int]:
        lines = (root / "proc/meminfo").read_text().splitlines()
        pairs = (line.partition(":")[::2] for line in lines)
        return {name: int(rest.split()[0]) for name, rest in pairs if rest.split()}

    return _try(read)


def _field(memory: dict[str, int] | Unavailable, name: str) -> Fact[int]:
    if isinstance(memory, Unavailable):
        return memory
    return memory[name] // 1024 if name in memory else Unavailable(f"/proc/meminfo has no {name}")


def _cma(memory: dict[str, int] | Unavailable) -> Fact[tuple[int, int]]:
    if isinstance(memory, Unavailable):
        return memory
    if "CmaTotal" not in memory or "CmaFree" not in memory:
        return Unavailable("this kernel reserves no contiguous memory")
    return memory["CmaTotal"], memory["CmaFree"]


def _glibc() -> tuple[int, ...]:
    text = os.confstr("CS_GNU_LIBC_VERSION") or ""
    return tuple(int(part) for part in text.split()[1].split("."))


def _memory_limit(root: Path) -> int | None:
    """MiB that the cgroup of this process may use, over all its levels; None if unlimited."""
    limits = []
    for line in (root / "proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            base, name = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            base, name = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        folder = base / path.lstrip("/")
        # In a container the path may be the host's, and only the root of the tree is there.
        for place in (folder, *(p for p in folder.parents if p.is_relative_to(base))):
            try:
                text = (place / name).read_text().strip()
            except OSError:
                continue
            if text.isdigit() and int(text) < _UNLIMITED:
                limits.append(int(text) >> 20)
    return min(limits, default=None)


def _segments(root: Path) -> tuple[Segment, ...]:
    """Files directly in /dev/shm, and whether any process maps or opens them."""
    folder = root / "dev/shm"
    entries = [entry for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)]
    if not entries:
        return ()
    live = _in_use(root)
    now = time.time()
    found = []
    for entry in entries:
        try:
            info = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        found.append(
            Segment(
                path=entry.path,
                mib=info.st_blocks * 512 / (1 << 20),
                age_s=max(0.0, now - info.st_mtime),
                live=(info.st_dev, info.st_ino) in live,
            )
        )
    return tuple(sorted(found, key=lambda segment: segment.path))


def _in_use(root: Path) -> set[tuple[int, int]]:
    """Device and inode of every shared-memory file that a process maps or holds open.

    Raises:
        TimeoutError: there are more processes than can be looked through in time.
    """
    used: set[tuple[int, int]] = set()
    until = time.monotonic() + _LOOK_S
    for process in (root / "proc").iterdir():
        if not process.name.isdigit():
            continue
        if time.monotonic() > until:
            raise TimeoutError(0, f"more processes than {_LOOK_S:g} s are enough for", "/proc")
        try:
            for line in (process / "maps").read_bytes().splitlines():
                if b"/dev/shm/" in line:
                    words = line.split(None, 5)
                    major, minor = words[3].split(b":")
                    used.add((os.makedev(int(major, 16), int(minor, 16)), int(words[4])))
            for descriptor in (process / "fd").iterdir():
                if str(descriptor.readlink()).startswith("/dev/shm/"):  # noqa: S108
                    info = descriptor.stat()
                    used.add((info.st_dev, info.st_ino))
        except (OSError, ValueError, IndexError):
            continue
    return used


def _limit(which: int, unit: int) -> Fact[int | None]:
    _, hard = resource.getrlimit(which)
    return None if hard == resource.RLIM_INFINITY else hard // unit


def _addresses(root: Path, name: str) -> tuple[str, ...] | Unavailable:
    """What the host's own name stands for, from /etc/hosts, else from the resolver."""
    found = []
    for line in (root / "etc/hosts").read_text().splitlines():
        words = line.split("#")[0].split()
        if name in words[1:]:
            found.append(words[0])
    if not found and root == Path("/"):
        asked = Reading("the name server", lambda: socket.getaddrinfo(name, None), _NAME_S).fact()
        if isinstance(asked, Unavailable):
            return asked
        found = [str(entry[4][0]) for entry in asked]
    return tuple(dict.fromkeys(found))


def _numa_allowed(root: Path) -> frozenset[int]:
    """Memory nodes that this process may use."""
    for line in (root / "proc/self/status").read_text().splitlines():
        if line.startswith("Mems_allowed_list:"):
            nodes: set[int] = set()
            for part in line.partition(":")[2].strip().split(","):
                first, _, last = part.partition("-")
                nodes |= set(range(int(first), int(last or first) + 1))
            return frozenset(nodes)
    raise ValueError("no Mems_allowed_list in /proc/self/status")


def _devices(root: Path) -> frozenset[str]:
    """Names below /dev, with those of the folders that matter."""
    base = root / "dev"
    names = {entry.name for entry in base.iterdir()}
    for folder in _SHOWN_FOLDERS:
        if (base / folder).is_dir():
            names |= {f"{folder}/{entry.name}" for entry in (base / folder).iterdir()}
    return frozenset(names)


def _modules(root: Path) -> frozenset[str]:
    lines = (root / "proc/modules").read_text().splitlines()
    return frozenset(line.split()[0] for line in lines if line)


def _container(root: Path) -> bool:
    """Whether this is a container: its runtime's marks, or a root that is an overlay."""
    if any((root / mark).exists() for mark in (".dockerenv", "run/.containerenv")):
        return True
    try:
        mounts = (root / "proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return False
    return any(words[4] == "/" and " - overlay " in line
               for line in mounts if len(words := line.split()) > 4)  # noqa: PLR2004  # fmt: skip


def _fabric_manager(root: Path, *, contained: bool) -> Fact[FabricManager]:
    """The service by its process, and the version that its program tells."""
    running = any(
        _comm(process) == _MANAGER[:15]  # the kernel keeps 15 characters
        for process in (root / "proc").iterdir()
        if process.name.isdigit()
    )
    if contained and not running:
        return Unavailable("processes of the host are not seen from a container")
    return FabricManager(running=running, version=_manager_version(root))


def _comm(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return ""


def _manager_version(root: Path) -> str:
    """What `nv-fabricmanager --version` says: Fabric Manager version is : 580.95.05."""
    program = root / "usr/bin" / _MANAGER
    try:
        done = subprocess.run([program, "--version"], capture_output=True, timeout=2, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = _VERSION.search(done.stdout.decode(errors="replace"))
    return match[0] if match else ""


def _compat(root: Path) -> tuple[str, ...]:
    """Copies of libcuda for forward compatibility that the loader is told of."""
    try:
        told = (root / "etc/ld.so.conf.d").iterdir()
        folders = [
            line.strip() for file in told for line in file.read_text(errors="replace").splitlines()
        ]
    except OSError:
        folders = []
    folders += os.environ.get("LD_LIBRARY_PATH", "").split(":")
    copies = []
    for folder in folders:
        if "compat" in folder:
            place = root / folder.lstrip("/") if root != Path("/") else Path(folder)
            copies += [str(p) for p in sorted(place.glob("libcuda.so*"))]
    return tuple(copies)


def unknown_host(why: Unavailable) -> Host:
    """A host of which nothing could be read in time."""
    return Host(
        system=platform.system(), kernel=platform.release(), container=False, glibc=why,
        memory_total_mib=why, memory_available_mib=why, memory_limit_mib=why, cma_kib=why,
        shm=why, segments=why, memlock_kib=why, nofile=why, name="", addresses=why,
        mempolicy=why, clone3=why, numa_allowed=why, xids=why, devices=why, modules=why,
        fabric_manager=why, compat_libcuda=(),
    )  # fmt: skip

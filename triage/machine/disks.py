"""File systems: what holds a path, how full it is, may it be written; caches and build locks.

In:  paths, the environment of the launch. Out: Disk, Place, Lock.
Not: writing anything, not even to try: rights are asked for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from triage.core.machine.facts import Fact, Unavailable
from triage.core.machine.host import Disk, Lock, Place

MOUNTS = Path("/proc/self/mountinfo")
# What for, the variable that moves it, and where it is without: below the home of the user.
# Source: documentation of Triton, FlashInfer, DeepGEMM, torch and huggingface_hub
CACHES = (
    ("model cache", "HF_HOME", ".cache/huggingface"),
    ("Triton cache", "TRITON_CACHE_DIR", ".triton/cache"),
    ("FlashInfer cache", "FLASHINFER_WORKSPACE_BASE", ".cache/flashinfer"),
    ("DeepGEMM cache", "SGLANG_DG_CACHE_DIR", ".cache/deep_gemm"),
    ("torch extension cache", "TORCH_EXTENSIONS_DIR", ".cache/torch_extensions"),
    ("torch compile cache", "TORCHINDUCTOR_CACHE_DIR", ""),
    ("temporary folder", "TMPDIR", ""),
)


def disk(path: Path) -> Fact[Disk]:
    """The file system of a path, or of its nearest folder that exists."""
    barred = False
    place = Path("/")
    for place in (path.absolute(), *path.absolute().parents):
        try:
            place.stat()
        except PermissionError:
            barred = True
        except OSError:
            continue  # it is not there yet
        else:
            break
    try:
        space = os.statvfs(place)
    except OSError as error:
        return Unavailable(f"{path}: {error.strerror}")
    mount, kind = _mount(place)
    read_only = bool(space.f_flag & os.ST_RDONLY)
    return Disk(
        path=str(path),
        mount=mount,
        kind=kind,
        read_only=read_only,
        writable=not (barred or read_only) and os.access(place, os.W_OK | os.X_OK),
        total_mib=space.f_blocks * space.f_frsize >> 20,
        free_mib=space.f_bavail * space.f_frsize >> 20,
    )


def _mount(place: Path) -> tuple[str, str]:
    """Mount point and type of file system of a path that exists."""
    best, kind = "/", "unknown"
    try:
        lines = MOUNTS.read_text().splitlines()
        resolved = str(place.resolve())
    except OSError:
        return best, kind
    for line in lines:
        before, _, after = line.partition(" - ")
        words, rest = before.split(), after.split()
        if len(words) < 5 or not rest:  # noqa: PLR2004
            continue
        point = words[4].replace("\\040", " ")
        inside = resolved == point or resolved.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # a later mount covers an earlier one
            best, kind = point, rest[0]
    return best, kind


def places(env: Mapping[str, str]) -> tuple[Place, ...]:
    """The folders that an engine with this environment writes to."""
    home = Path(env.get("HOME") or "/")
    caches = Path(env["XDG_CACHE_HOME"]) if env.get("XDG_CACHE_HOME") else None
    temporary = Path(env.get("TMPDIR") or "/tmp")  # noqa: S108  what the engine does
    found = []
    for what, variable, usual in CACHES:
        given = env.get(variable)
        if given:
            path = Path(given)
        elif not usual:
            path = temporary
        elif caches is not None and usual.startswith(".cache/"):
            path = caches / usual.removeprefix(".cache/")
        else:
            path = home / usual
        found.append(Place(what=what, variable=variable, disk=disk(path)))
    return tuple(found)


def extension_locks(env: Mapping[str, str]) -> Fact[tuple[Lock, ...]]:
    """Lock files of builds of torch extensions. Source: torch.utils.file_baton."""
    home = Path(env.get("HOME") or "/")
    caches = Path(env.get("XDG_CACHE_HOME") or home / ".cache")
    base = Path(env.get("TORCH_EXTENSIONS_DIR") or caches / "torch_extensions")
    now = time.time()
    found = []
    try:
        for pattern in ("*/lock", "*/*/lock"):
            for path in base.glob(pattern):
                found.append(Lock(path=str(path), age_s=max(0.0, now - path.stat().st_mtime)))  # noqa: PERF401
    except OSError as error:
        return Unavailable(f"{base}: {error.strerror}")
    return tuple(found)

"""Files that a launch leaves outside its folder: shared memory, and its TMPDIR.

In:  PIDs of the launch while it runs. Out: paths removed.
Not: files that existed before the launch, files in folders below /dev/shm (people keep models
there), and files that another live process uses. Light imports only: the guard uses this.

Source: SGLang 0.5.23 never removes /dev/shm/sglang_loads_*.shm, and leaves its socket names
in TMPDIR; semaphores of multiprocessing stay after SIGKILL.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SHM = "/dev/shm"  # noqa: S108  the place of POSIX shared memory, no temporary file of ours

_SEMAPHORE = f"{SHM}/sem.mp-"  # Source: multiprocessing.synchronize.SemLock._make_name

# Device and inode. Names will not do: a semaphore is mapped under a temporary
# name and then renamed.
FileId = tuple[int, int]


def present() -> dict[FileId, str]:
    """Our user's files directly in /dev/shm: id -> path."""
    found = {}
    try:
        for entry in os.scandir(SHM):
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISREG(info.st_mode) and info.st_uid == os.getuid():
                found[info.st_dev, info.st_ino] = entry.path
    except OSError:
        return {}
    return found


def semaphores(before: set[FileId]) -> set[FileId]:
    """Named semaphores of multiprocessing that came since `before`.

    A process may make one and be killed between two looks. Whoever has one
    maps it as long as he lives, before it even has its name: so one that nobody
    maps, once the launch is gone, is nobody's.
    """
    return {
        key for key, path in present().items() if key not in before and path.startswith(_SEMAPHORE)
    }


def used_by(pids: Iterable[int]) -> set[FileId]:
    """Shared-memory files that these processes map or hold open."""
    used: set[FileId] = set()
    for pid in pids:
        used |= _mapped(pid) | _opened(pid)
    return used


def _mapped(pid: int) -> set[FileId]:
    found: set[FileId] = set()
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:  # noqa: PTH123
            text = file.read()
    except OSError:
        return found
    if SHM.encode() not in text:
        return found
    for line in text.splitlines():
        # 7f10-7f20 rw-s 00000000 00:1a 123 /dev/shm/name
        words = line.split(None, 5)
        if len(words) > 5 and words[5].startswith(SHM.encode()):  # noqa: PLR2004
            major, minor = words[3].split(b":")
            found.add((os.makedev(int(major, 16), int(minor, 16)), int(words[4])))
    return found


def _opened(pid: int) -> set[FileId]:
    found: set[FileId] = set()
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return found
    for name in names:
        path = f"{folder}/{name}"
        try:
            if os.readlink(path).startswith(SHM):  # noqa: PTH115
                info = os.stat(path)  # noqa: PTH116
                found.add((info.st_dev, info.st_ino))
        except OSError:
            continue
    return found


def remove_shared(ours: Iterable[FileId]) -> list[str]:
    """Remove those of our files that no live process uses any more; paths removed."""
    candidates = {key: path for key, path in present().items() if key in set(ours)}
    if not candidates:
        return []
    others = used_by(int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208
    removed = []
    for key, path in sorted(candidates.items(), key=lambda item: item[1]):
        if key not in others:
            try:
                os.unlink(path)  # noqa: PTH108
            except OSError:
                continue
            removed.append(path)
    return removed


def remove_folder(path: str) -> list[str]:
    """Remove a folder with everything in it; the paths directly in it that were there."""
    try:
        entries = list(os.scandir(path))
    except OSError:
        return []
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, stat.S_IRWXU)  # noqa: PTH101
                remove_folder(entry.path)
            else:
                os.unlink(entry.path)  # noqa: PTH108
        except OSError:
            continue
    try:
        os.rmdir(path)  # noqa: PTH106
    except OSError:
        return []
    return sorted(entry.path for entry in entries)

"""A folder that fills up, for an ordinary user and in a container too."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FULL = "No space left on device"
TOO_LARGE = "File too large"


@contextmanager
def small_disk(folder: Path, *, size: int, largest_file: int) -> Iterator[str]:
    """Writing below the folder fails after `size` bytes, with the text that is given.

    Where no file system may be mounted, the kernel refuses to let a file of this
    process and its children grow beyond `largest_file` bytes: another errno by
    the same road, and the same to a program that writes.
    """
    if _mount(folder, size):
        try:
            yield FULL
        finally:
            subprocess.run(["umount", "-l", folder], check=True)
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Python ignores SIGXFSZ from its start, so a write beyond the limit is an error.
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, hard))
    try:
        yield TOO_LARGE
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _mount(folder: Path, size: int) -> bool:
    """Whether this process may put a file system of that size into the folder."""
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "triage", str(folder)]
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:  # there is no such program
        return False

"""A block of TCP ports for one launch, that no other triage on this machine takes.

In:  the block's width. Out: its first port, held while the context lasts.
Not: keeping foreign programs off the ports.

Source: SGLang 0.5.23 with attention DP also binds port + 233 to port + 239.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from triage.errors import HostError

_LOWEST = 12_000
_USUAL_EPHEMERAL = 32_768
_EXTRA = range(233, 240)
# One place for every user and every TMPDIR: the ports are common to all.
_LOCKS = Path("/tmp")  # noqa: S108  opened without following links

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def reserve(span: int) -> Iterator[int]:
    """Hold a block of `span` ports below the ephemeral range; gives the first.

    Raises:
        HostError: No block is free.
    """
    bases = range(_LOWEST, _ephemeral() - span, span)
    # Each process begins elsewhere, so that parallel ones seldom meet.
    first = os.getpid() * 7 % max(1, len(bases))
    for base in [*bases[first:], *bases[:first]]:
        lock = _take(base)
        if lock is None:
            continue
        try:
            if all(_free(base + offset) for offset in (0, *_EXTRA) if offset < span):
                yield base
                return
        finally:
            # Removed before it is let go: who waits for it sees that it is gone.
            with suppress(FileNotFoundError, PermissionError):  # another user made it
                _path(base).unlink()
            os.close(lock)
    raise HostError(
        f"No block of {span} free TCP ports was found between {_LOWEST} and {_ephemeral()}.",
        hint="ss -ltn",
    )


def _ephemeral() -> int:
    """First port that the system hands out by itself."""
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _USUAL_EPHEMERAL
    return first if first > 2 * _LOWEST else _USUAL_EPHEMERAL


def _path(base: int) -> Path:
    return _LOCKS / f"triage-port-{base}.lock"


def _take(base: int) -> int | None:
    """A locked descriptor of the block's file; None if somebody has it.

    A file that a killed triage of another user left is locked like one of ours: to
    read is enough for that. It is opened without O_CREAT, which the kernel refuses
    for another's file in a folder like /tmp.
    """
    try:
        lock = os.open(_path(base), _FLAGS)
    except FileNotFoundError:
        try:
            lock = os.open(_path(base), _FLAGS | os.O_CREAT | os.O_EXCL, 0o644)
        except OSError:
            return None  # somebody else was faster
    except OSError:
        return None  # no file of a triage
    try:
        with suppress(PermissionError):  # of another user, who has done it
            os.fchmod(lock, 0o644)  # whatever the umask says
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held = os.fstat(lock)
        if held.st_nlink and os.path.samestat(held, _path(base).stat()):
            return lock
    except OSError:
        pass
    os.close(lock)
    return None


def _free(port: int) -> bool:
    """Whether the port can be bound on all addresses."""
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True

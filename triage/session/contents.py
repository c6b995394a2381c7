"""The bytes of a log file, unpacked while they are read.

In:  a path. Out: chunks, or all of it up to a limit.
Not: diagnosing (logs.py) or unpacking itself (unpack.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from triage.errors import HostError, UsageError, hint
from triage.session.unpack import MAGIC, unpacked

_CHUNK = 1 << 18
_LONGEST = 1 << 20


def chunks(path: Path) -> Iterator[bytes]:
    """The log in pieces of no particular length.

    Raises:
        HostError: it cannot be read, or what unpacks it is not installed.
        UsageError: it is packed and damaged.
    """
    try:
        with path.open("rb") as file:
            first = file.read(_CHUNK)
            packed = chain((first,), iter(lambda: file.read(_CHUNK), b""))
            yield from unpacked(packed, str(path)) if first.startswith(MAGIC) else packed
    except OSError as error:
        raise HostError(
            f"cannot read {path}: {error.strerror}", hint=hint("ls", "-l", path)
        ) from error


def whole(path: Path, most: int) -> bytes:
    """The log in one piece; raises UsageError if it has more than `most` bytes."""
    found = bytearray()
    for chunk in chunks(path):
        found += chunk
        if len(found) > most:
            raise UsageError(
                f"{path} has more than {most >> 20} MiB, too much for a case",
                hint=f"{hint('head', '-c', '32M', path)} > part.log",
            )
    return bytes(found)


def blocks(path: Path) -> Iterator[bytes]:
    """The log in blocks of whole lines; a line without an end in sight is cut."""
    rest = b""
    for chunk in chunks(path):
        lines, end, rest = (rest + chunk).rpartition(b"\n")
        yield lines + end
        if len(rest) > _LONGEST:
            yield rest
            rest = b""
    yield rest


def numbered(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line of a log with its number from 1, without its end; of an endless one the start."""
    number, open_line = 0, False
    for block in blocks(path):
        if not block:
            continue
        lines = block.split(b"\n")
        ended = lines[-1] == b""
        for line in lines[:-1] if ended else lines:
            if not open_line:
                number += 1
                yield number, line
            open_line = False
        open_line = not ended

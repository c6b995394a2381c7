"""Known secrets out of what a launch writes, each byte of them a star, so that offsets stay.

In:  values, chunks of output, files. Out: the same without the values.
Not: which values are secret (secret_values.py), or secrets that only their shape tells
(triage.core.redact). Light imports only: the keeper uses this.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_STAR = b"*"
_LONGEST = 4096  # bytes of a value; what is longer is told by its start


class Mask:
    """Hides values in a stream, also where a chunk ends within one."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        raw = {os.fsencode(value)[:_LONGEST] for value in values}
        self._values = sorted(raw - {b""}, key=lambda value: (-len(value), value))
        self._held = b""

    def take(self, chunk: bytes) -> bytes:
        """What may be written by now; an end that may begin a secret is held back."""
        if not self._values:
            return chunk
        whole = hidden(self._held + chunk, self._values)
        most = max(_begins(whole, value) for value in self._values)
        self._held = whole[len(whole) - most :]
        return whole[: len(whole) - most]

    def rest(self) -> bytes:
        """What was held back: nothing follows for now."""
        held, self._held = self._held, b""
        return held

    def text(self, text: str) -> str:
        """A text without the values."""
        raw = text.encode("utf-8", "surrogateescape")
        return hidden(raw, self._values).decode("utf-8", "surrogateescape")


def hidden(raw: bytes, values: Iterable[bytes]) -> bytes:
    """The bytes with each value as stars."""
    for value in values:
        if value in raw:
            raw = raw.replace(value, _STAR * len(value))
    return raw


def _begins(raw: bytes, value: bytes) -> int:
    """The length of the longest end of `raw` with which the value begins, without being whole."""
    for size in range(min(len(value) - 1, len(raw)), 0, -1):
        if raw.endswith(value[:size]):
            return size
    return 0


def in_files(folder: str, values: Iterable[str]) -> None:
    """Hide the values in the files directly in a folder, in place; links are left alone."""
    mask = Mask(values)
    if not mask._values:
        return
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return
    for name in names:
        try:
            _in_file(f"{folder}/{name}", mask)
        except OSError:
            continue


def _in_file(path: str, mask: Mask) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        at, read = 0, b"+"
        while read:
            read = os.pread(descriptor, 1 << 20, at + len(mask._held))
            begins, whole = at, mask._held + read
            done = mask.take(read) if read else mask.rest()
            if done != whole[: len(done)]:
                os.pwrite(descriptor, done, begins)
            at += len(done)
    finally:
        os.close(descriptor)

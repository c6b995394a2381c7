"""Unpacks a compressed log while it is read: gzip, zstd, xz, bzip2.

In:  chunks of the compressed bytes. Out: chunks of the log.
Not: archives of several files (tar, zip).

No chunk is longer than `_CHUNK`, however far its bytes expand.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Protocol

from triage.errors import HostError, UsageError, hint

_CHUNK = 1 << 18
GZIP, ZSTD, XZ, BZIP2 = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh"
MAGIC = (GZIP, ZSTD, XZ, BZIP2)
PROGRAMS = {GZIP: "zcat", ZSTD: "zstdcat", XZ: "xzcat", BZIP2: "bzcat"}


class _Part(Protocol):
    """One stream of a file that may hold several, one after the other."""

    eof: bool
    needs_input: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


def unpacked(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """The log in these compressed bytes.

    Raises:
        UsageError: the file is damaged or cut off.
        HostError: nothing here can unpack zstd.
    """
    chunks = iter(chunks)
    first = next(chunks, b"")
    magic = next(start for start in MAGIC if first.startswith(start))
    chunks = chain((first,), chunks)
    by_hand = f"{hint(PROGRAMS[magic], name if name != '<stdin>' else 'FILE')} | triage classify"
    broken: tuple[type[Exception], ...] = (EOFError, ValueError)
    make: Any
    if magic == GZIP:
        import zlib

        make, broken = _Gzip, (*broken, zlib.error)
    elif magic == XZ:
        import lzma

        make, broken = lzma.LZMADecompressor, (*broken, lzma.LZMAError)
    elif magic == BZIP2:
        import bz2

        make, broken = bz2.BZ2Decompressor, (*broken, OSError)
    else:
        try:
            from compression import zstd  # type: ignore[import-not-found]  # Python 3.14 has it

            make, broken = zstd.ZstdDecompressor, (*broken, zstd.ZstdError)
        except ImportError:
            try:
                import zstandard
            except ImportError:
                raise HostError(
                    f"{name} is compressed with zstd, which this Python cannot unpack; "
                    "pip install zstandard makes it able to",
                    hint=by_hand,
                ) from None
            make, broken = None, (*broken, zstandard.ZstdError)
    try:
        yield from _parts(chunks, make) if make is not None else _zstandard(chunks)
    except broken as error:
        raise UsageError(f"{name} is damaged or cut off: {error}", hint=by_hand) from error


def _parts(chunks: Iterator[bytes], make: Any) -> Iterator[bytes]:
    """All streams of the file, whatever their number; zeros behind them are padding."""
    data, part = b"", None
    for chunk in chunks:
        data += chunk
        while data or (part is not None and not part.needs_input):
            if part is None:
                data = data.lstrip(b"\0")
                if not data:
                    break
                part = make()
            found = part.decompress(data, _CHUNK)
            data = b""
            if found:
                yield found
            if part.eof:
                data, part = part.unused_data, None
    if part is not None:
        raise EOFError("the end is missing")


class _Gzip:
    """zlib's object with the manners of the others."""

    def __init__(self) -> None:
        import zlib

        self._object = zlib.decompressobj(wbits=31)
        self.eof = False
        self.needs_input = True
        self.unused_data = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """At most so many bytes; the rest waits for a call without data."""
        found = self._object.decompress(self._object.unconsumed_tail + data, max_length)
        self.eof, self.unused_data = self._object.eof, self._object.unused_data
        self.needs_input = not self._object.unconsumed_tail and len(found) < max_length
        return found


def _zstandard(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The zstandard package reads a file, across its frames; a cut one ends where it ends."""
    import zstandard

    file: Any = _File(chunks)
    reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    while found := reader.read(_CHUNK):
        yield found


class _File(io.RawIOBase):
    """A file of chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        if not self._rest:
            self._rest = next(self._chunks, b"")
        found, self._rest = self._rest[:size], self._rest[size:]
        return found

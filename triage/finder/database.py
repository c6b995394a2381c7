"""A literal database of Hyperscan (Vectorscan on ARM): one pass over the bytes for all clues.

In:  literals; blocks of whole lines. Out: marks, equal to those of core's Plain.
Not: regular expressions; core tries those on the few lines that have a literal.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import hyperscan

from triage.core.log.finder import Literals, LongMarker, Mark, Marker, Plain
from triage.finder.lines import Lines

try:
    from stringzilla import bytesum, translate
except ImportError:  # no wheel for this machine
    bytesum = translate = None

# With a text as short as this among them, Hyperscan looks at every byte instead of every
# second or fourth. Its table is then a half or a quarter as large, and fits the
# processor's first cache: that makes it a fifth faster, and with every fourth byte twice.
_SHORT = b"\x01\x02"
_FEW = 8  # long lines for which a database of their own is not worth its making
_HUGE = 1 << 16  # bytes of one for which it is
_MANY = 1 << 10  # bytes in which line ends are worth a call of another library
_LF = bytes(byte == ord("\n") for byte in range(256))


class Database:
    """A Finder; raises ImportError where its package is missing or its library does not load."""

    def __init__(self, literals: Literals) -> None:
        self._texts = [text.encode() for text in literals.texts]
        self._marker = Marker(literals)
        clues = [text.encode() for text, _ in literals.clues]
        self._clues: hyperscan.Database | None = _compiled([*clues, _SHORT])
        self._every: hyperscan.Database | None = None  # all literals, for long lines
        self._plain = Plain(literals)
        self._long = 0  # lines so far
        self._lines = Lines(self._texts)
        self._one = threading.Lock()  # launches at the same time share scratch space and marker

    def close(self) -> None:
        """Free the databases and their scratch space."""
        self._clues = self._every = None
        self._plain.close()

    def scan(self, block: bytes, start: int, stop: int) -> tuple[list[Mark], int]:
        """See core's Finder."""
        with self._one:
            return self._marks(block, start, stop)

    def line_ends(self, block: bytes, start: int, stop: int) -> int:
        """See core's Finder."""
        if translate is None or stop - start < _MANY:
            return self._plain.line_ends(block, start, stop)
        # Each LF becomes a one: a table and a sum take a sixth of what any search takes.
        ones: int = bytesum(translate(_view(block, start, stop), _LF))
        return ones

    def _marks(self, block: bytes, start: int, stop: int) -> tuple[list[Mark], int]:
        if self._lines.pays(stop - start):
            return self._lines.marks(block, start, stop, self._searched), stop
        return self._searched(block, start, stop)

    def _searched(self, block: bytes, start: int, stop: int) -> tuple[list[Mark], int]:
        marker = self._marker
        marker.begin(block, start, stop)
        if self._clues is not None:
            _scan(self._clues, block, start, stop, marker.found)
        if marker.long:
            end = block.find(b"\n", marker.resume, stop)
            return marker.marks + self._of_long(block, marker.resume, end), end + 1
        return marker.marks, marker.resume

    def _of_long(self, block: bytes, start: int, stop: int) -> list[Mark]:
        self._long += 1
        if self._long <= _FEW and stop - start < _HUGE:
            return self._plain.scan(block, start, stop + 1)[0]
        if self._every is None:
            self._every = _compiled(self._texts)
        marker = LongMarker(start, stop)
        _scan(self._every, block, start, stop, marker.found)
        return marker.marks


def _compiled(texts: Sequence[bytes]) -> hyperscan.Database:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=list(texts),
        ids=list(range(len(texts))),
        elements=len(texts),
        flags=0,
        literal=True,
    )
    return database


def _scan(
    database: hyperscan.Database,
    block: bytes,
    start: int,
    stop: int,
    found: Callable[[int, int, int, int, object], bool],
) -> None:
    data: Any = _view(block, start, stop)
    try:  # noqa: SIM105  `suppress` costs as much as a short line
        database.scan(data, found)
    except hyperscan.ScanTerminated:  # a marker asks for it
        pass


def _view(block: bytes, start: int, stop: int) -> bytes | memoryview:
    """A part of the block, without a copy."""
    whole = not start and stop == len(block)
    return block if whole else memoryview(block)[start:stop]

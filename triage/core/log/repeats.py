"""Lines that say again what another said, told from it by their bytes alone.

In:  the bytes of a line; those that were read before. Out: Line and Reading values.
Not: what a line looks like (lines.py) or says (reading.py): this only remembers both.

Behind the head of an engine's record, `[2026-07-01 12:00:00 TP3] `, ranks write the same.
"""

from __future__ import annotations

from functools import lru_cache

from triage.core.log.lines import Line, numbered
from triage.core.log.reading import Reader, Reading
from triage.core.regex import regex
from triage.core.typed import TypeVar

_LONGEST = 400  # bytes of a line that is remembered
_MOST = 4096  # of each sort
_TIME = regex(rb"\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d")
_TAG = regex(rb"(?: [A-Z][A-Z_]*\d+)*\] ")
T = TypeVar("T")
_AT = 20  # bytes of a time, behind which the tag stands


class Repeats:
    """Lines that were read, of a process that may read many logs."""

    def __init__(self) -> None:
        self._times: dict[bytes, str] = {}  # `[2026-07-01 12:00:00` -> the time
        self._ranks: dict[bytes, str] = {}  # ` TP3] ` -> the rank
        self._bodies: dict[bytes, tuple[str, str, Reading]] = {}  # rank it names, text
        self._others: dict[bytes, tuple[str, str, str, bool, bool, Reading]] = {}

    def get(self, raw: bytes, offset: int, number: int) -> tuple[Line, Reading] | None:
        """The line at this place and what it says, if its like was read before."""
        if not raw.startswith(b"[20"):
            if (other := self._others.get(raw)) is None:
                return None
            rank, text, wrapper, simulated, headed, said = other
            return Line(offset, number, None, rank, text, wrapper, simulated, headed), said
        start = raw.find(b"] ", _AT) + 2
        if (body := self._bodies.get(raw[start:])) is None:
            return None
        if (head := self._head(raw[:_AT], raw[_AT:start])) is None:
            return None
        time, rank = head
        own, text, said = body
        if rank == "main":
            rank = own
        return Line(offset, number, time, rank, text, "", simulated=False, headed=True), said

    def add(self, raw: bytes, line: Line, said: Reading) -> None:
        """Remember what was made of a line that has nothing foreign in front."""
        if len(raw) > _LONGEST:
            return
        if raw.startswith(b"[20"):
            start = raw.find(b"] ", _AT) + 2
            body = raw[start:]
            # What looks like another head, or like Ray's, is judged with what stands before it.
            if body.startswith(b"[20") or b" pid=" in body[:120]:
                return
            if line.headed and not line.wrapper and self._head(raw[:_AT], raw[_AT:start]):
                own = numbered(line.text) or "main"
                _bounded(self._bodies)[body] = own, line.text, said
        elif line.time is None:  # one with a time is hardly printed twice
            _bounded(self._others)[raw] = (*line[3:], said)

    def _head(self, stamp: bytes, tag: bytes) -> tuple[str, str] | None:
        """Time and rank of an engine's record, None if that is not what it begins with."""
        time, rank = self._times.get(stamp), self._ranks.get(tag)
        if time is None:
            if _TIME.fullmatch(stamp) is None:
                return None
            time = stamp[1:].decode().replace(" ", "T")
            _bounded(self._times)[stamp] = time
        if rank is None:
            if _TAG.fullmatch(tag) is None:
                return None
            rank = tag[:-2].decode().strip() or "main"
            _bounded(self._ranks)[tag] = rank
        return time, rank


def _bounded(known: dict[bytes, T]) -> dict[bytes, T]:
    if len(known) >= _MOST:
        known.clear()
    return known


@lru_cache(maxsize=4)
def repeats_of(_reader: Reader) -> Repeats:
    """What was remembered of lines that this reader read."""
    return Repeats()

"""Finds the few lines of a log that are worth reading, without reading the others.

In:  bytes as they come, and byte strings that mark a line as interesting.
Out: calls of a sink, one per interesting line, in file order.
Not: understanding a line (evidence.py, live.py).

A block of whole lines is searched once for each trigger; only lines with a hit
are cut out, and the lines that follow while the sink is hungry (inside a
traceback). The calls do not depend on where the chunks were cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

BLOCK = 1 << 18  # bytes searched at a time; fits a processor's cache
LONGEST = 1 << 20  # bytes of one line that are looked at; the rest is skipped
_LONG = 4096  # bytes of a line from which on the places of the triggers matter
_HITS = 16  # places remembered on one line


class Sink(Protocol):
    """Takes interesting lines; while `hungry`, every following line too."""

    hungry: bool

    def take(
        self, raw: bytes, offset: int, number: int, hits: Sequence[int], seen: Sequence[int]
    ) -> None:
        """One line without its LF.

        `seen` are the numbers of the triggers in it; `hits` some of their byte
        positions, if the line is long.
        """


class Scanner:
    """Cuts bytes into lines and hands the interesting ones to a sink.

    Args:
        triggers: A line with any of these is interesting.
        sink: Where the lines go.
        every_line: Hand over all lines (a signature without a literal needs that).
    """

    def __init__(self, triggers: Sequence[bytes], sink: Sink, *, every_line: bool = False) -> None:
        self._triggers = tuple(triggers)
        self._sink = sink
        self._every = every_line
        self._tail = bytearray()  # the line that is not finished
        self._skipped = 0  # bytes of that line beyond LONGEST
        self.offset = 0  # of the first byte not yet handed on
        self.lines = 0  # finished lines so far

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes; they may end anywhere."""
        for start in range(0, len(chunk), BLOCK):
            self._feed(chunk[start : start + BLOCK])

    def close(self) -> None:
        """The input has ended; a last line without LF counts."""
        if self._tail or self._skipped:
            self._finish(bytes(self._tail), self._skipped)
            self._tail.clear()
            self._skipped = 0

    def _feed(self, chunk: bytes) -> None:
        if self._tail:
            end = chunk.find(b"\n")
            if end < 0:
                self._keep(chunk)
                return
            self._keep(chunk[:end])
            self._finish(bytes(self._tail), self._skipped + 1)
            self._tail.clear()
            self._skipped = 0
            chunk = chunk[end + 1 :]
        last = chunk.rfind(b"\n") + 1
        if last:
            self._block(chunk[:last])
        self._keep(chunk[last:])

    def _keep(self, part: bytes) -> None:
        room = LONGEST - len(self._tail)
        self._tail += part[:room]
        self._skipped += max(0, len(part) - room)

    def _finish(self, line: bytes, more: int) -> None:
        """Hand on a line that arrived in pieces; `more` bytes of it are not in `line`."""
        seen = [number for number, trigger in enumerate(self._triggers) if trigger in line]
        if seen or self._sink.hungry or self._every:
            self._give(line, self.offset, self.lines + 1, seen)
        self.offset += len(line) + more
        self.lines += 1

    def _give(self, line: bytes, offset: int, number: int, seen: Sequence[int]) -> None:
        hits = self._hits(line, seen) if len(line) > _LONG else ()
        self._sink.take(line, offset, number, hits, seen)

    def _hits(self, line: bytes, seen: Sequence[int]) -> list[int]:
        """Positions of these triggers in a long line, not too close to each other."""
        found: list[int] = []
        for number in seen:
            trigger, most = self._triggers[number], len(found) + _HITS
            at = line.find(trigger)
            while at >= 0 and len(found) < most:
                found.append(at)
                at = line.find(trigger, at + _LONG // 2)
        return sorted(found)[:_HITS]

    def _block(self, block: bytes) -> None:
        """Search whole lines; each ends with LF."""
        at, number = 0, self.lines
        for start, seen in sorted(self._mark(block).items()):
            at, number = self._follow(block, at, start, number)
            number += block.count(b"\n", at, start) + 1
            end = block.find(b"\n", start)
            self._give(block[start:end], self.offset + start, number, seen)
            at = end + 1
        at, number = self._follow(block, at, len(block), number)
        self.lines = number + block.count(b"\n", at)
        self.offset += len(block)

    def _follow(self, block: bytes, at: int, stop: int, number: int) -> tuple[int, int]:
        """Hand on lines without a trigger for as long as the sink is hungry."""
        while at < stop and (self._sink.hungry or self._every):
            end = block.find(b"\n", at)
            number += 1
            self._give(block[at:end], self.offset + at, number, ())
            at = end + 1
        return at, number

    def _mark(self, block: bytes) -> dict[int, list[int]]:
        """Start of each interesting line -> numbers of the triggers in it, in order."""
        marked: dict[int, list[int]] = {}
        for number, trigger in enumerate(self._triggers):
            at = block.find(trigger)
            while at >= 0:
                start = block.rfind(b"\n", 0, at) + 1
                marked.setdefault(start, []).append(number)
                at = block.find(trigger, block.find(b"\n", at))
        return marked

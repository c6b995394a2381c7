"""Finds the few lines of a log that are worth reading, without reading the others.

In:  bytes as they come, and a finder of the byte strings that mark a line as interesting.
Out: calls of a sink, one per interesting line, in file order.
Not: finding byte strings (finder.py) or understanding a line (evidence.py, live.py).

Only lines with a literal are cut out, and the lines that follow while the sink is
hungry (inside a traceback). The calls do not depend on where the chunks were cut.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from triage.core.log.finder import Finder

BLOCK = 1 << 18  # bytes searched at a time; fits a processor's cache
LONGEST = 1 << 20  # bytes of one line that are looked at; the rest is skipped
NEAR = 1 << 16  # bytes after an interesting line in which frequent lines are interesting, too
ENOUGH = 16  # lines with a frequent literal that are taken there


class Sink(Protocol):
    """Takes interesting lines.

    While it is `hungry`, every following line too. Literals that are in much of what a
    healthy server writes are `frequent`: a line with one is taken only near another
    interesting line or the start, and there not often. Lines with an `awaited` literal
    are all taken. Each may change with every line.
    """

    @property
    def hungry(self) -> bool:
        """Whether the next line is wanted whatever is in it."""

    @property
    def frequent(self) -> Sequence[bytes]:
        """Literals of lines that say something only near others."""

    @property
    def awaited(self) -> Sequence[bytes]:
        """Literals that are looked for at present, beside the finder's."""

    def take(
        self, raw: bytes, offset: int, number: int, hits: Sequence[int], seen: Collection[int]
    ) -> None:
        """One line without its LF.

        `seen` are the numbers of the finder's literals in it; `hits` are places of
        interest, if the line is long (finder.Mark).
        """


class Scanner:
    """Cuts bytes into lines and hands the interesting ones to a sink.

    Args:
        finder: A line with any of its literals is interesting.
        sink: Where the lines go.
        every_line: Hand over all lines (a signature without a literal needs that).
    """

    def __init__(self, finder: Finder, sink: Sink, *, every_line: bool = False) -> None:
        self._finder = finder
        self._sink = sink
        self._every = every_line
        self._tail = bytearray()  # the line that is not finished
        self._skipped = 0  # bytes of that line beyond LONGEST
        self._near = NEAR  # where lines with frequent literals are taken no more
        self._taken: dict[bytes, int] = {}  # how many were since the last interesting line
        self._number = 0  # lines before `_counted`
        self._counted = 0  # offset
        self.offset = 0  # of the first byte not yet handed on

    @property
    def lines(self) -> int:
        """Finished lines so far."""
        return self._number

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes; they may end anywhere."""
        if len(chunk) <= BLOCK:
            self._feed(chunk)
            return
        for start in range(0, len(chunk), BLOCK):
            self._feed(chunk[start : start + BLOCK])

    def close(self) -> None:
        """The input has ended; a last line without LF counts."""
        if self._tail or self._skipped:
            self._finish(self._skipped - 1)

    def _feed(self, chunk: bytes) -> None:
        start = 0
        if self._tail:
            start = chunk.find(b"\n") + 1
            if not start:
                self._keep(chunk)
                return
            self._keep(chunk[: start - 1])
            self._finish(self._skipped)
        last = chunk.rfind(b"\n") + 1
        if last > start:
            self._block(chunk, start, last)
        if last < len(chunk):
            self._keep(chunk[last:])

    def _keep(self, part: bytes) -> None:
        room = LONGEST - len(self._tail)
        self._tail += part[:room]
        self._skipped += max(0, len(part) - room)

    def _finish(self, more: int) -> None:
        """Hand on a line that arrived in pieces; `more` bytes of it are not in the tail."""
        line = bytes(self._tail) + b"\n"
        self._tail.clear()
        self._skipped = 0
        self._block(line, 0, len(line))
        self.offset += more
        self._counted += more

    def _block(self, block: bytes, start: int, stop: int) -> None:
        """Search whole lines; each ends with LF."""
        base = self.offset - start
        at = start
        while at < stop:
            marks, upto = self._finder.scan(block, at, stop)
            for mark in marks:
                at = self._between(block, at, mark.start, base)
                self._count(block, mark.start, base)
                self._sink.take(
                    block[mark.start : mark.stop],
                    base + mark.start,
                    self._number + 1,
                    mark.hits,
                    mark.seen,
                )
                at = mark.stop + 1
                self._near = base + at + NEAR
                self._taken.clear()
            at = self._between(block, at, upto, base)
        self._count(block, stop, base)
        self.offset = base + stop

    def _count(self, block: bytes, at: int, base: int) -> None:
        """Number the lines up to here."""
        start = self._counted - base
        if at - start < 1 << 12:
            self._number += block.count(b"\n", start, at)
        else:  # replacing is four times as fast as counting, which goes byte by byte
            part = block[start:at]
            self._number += len(part) - len(part.replace(b"\n", b""))
        self._counted = base + at

    def _between(self, block: bytes, at: int, stop: int, base: int) -> int:
        """Hand on lines without a mark: while the sink is hungry, or with a frequent literal."""
        sink = self._sink
        while at < stop:
            if sink.hungry or self._every:
                self._count(block, at, base)
                end = block.find(b"\n", at)
                sink.take(block[at:end], base + at, self._number + 1, (), ())
                at = end + 1
                self._near = base + at + NEAR
                self._taken.clear()
            elif base + at < self._near or sink.awaited:
                at = self._unmarked(block, at, stop, base)
            else:
                return stop
        return stop

    def _unmarked(self, block: bytes, at: int, stop: int, base: int) -> int:
        """Hand on lines with a frequent or awaited literal; return where to go on."""
        sink = self._sink
        limit = max(at, min(stop, self._near - base))
        places: dict[bytes, int] = {}  # where each literal comes next; `stop` if it does not
        while not sink.hungry:
            frequent = [text for text in sink.frequent if self._taken.get(text, 0) < ENOUGH]
            start = stop
            for text in (*frequent, *sink.awaited):
                if (place := places.get(text, -1)) < at:
                    upto = stop if text in sink.awaited else limit
                    place = block.find(text, at, upto)
                    places[text] = place = stop if place < 0 else place
                start = min(start, place)
            if start == stop:
                return stop
            start = block.rfind(b"\n", at, start) + 1 or at
            at = block.find(b"\n", start)
            line = block[start:at]
            for text in frequent:
                if text in line:
                    self._taken[text] = self._taken.get(text, 0) + 1
            self._count(block, start, base)
            sink.take(line, base + start, self._number + 1, (), ())
            at += 1
        return at

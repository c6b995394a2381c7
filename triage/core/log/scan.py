"""Finds the few lines of a log that are worth reading, without reading the others.

In:  bytes as they come, and a finder of the byte strings that mark a line as interesting.
Out: calls of a sink, one per interesting line, in file order.
Not: finding byte strings (finder.py) or understanding a line (evidence.py, live.py).

Only lines with a literal are cut out, and the lines that follow while the sink is
hungry (inside a traceback). The calls do not depend on where the chunks were cut.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from triage.core.log.finder import Finder
from triage.core.typed import Protocol

BLOCK = 1 << 18  # bytes searched at a time; fits a processor's cache
LONGEST = 1 << 20  # bytes of one line that are looked at; the rest is skipped
FEW = 1 << 9  # bytes in which line ends are counted here: finders know better for many
NEAR = 1 << 16  # bytes after an interesting line in which frequent lines are interesting, too
ENOUGH = 8  # lines with a frequent literal that are looked at there: one of each rank of a machine
ALIKE = 4  # of those, lines of one rank that are taken
MANY = 256  # lines with one frequent literal, after which of one rank only the first is taken


class Sink(Protocol):
    """Takes interesting lines.

    While it is `hungry`, every following line too. Literals that are in much of what a
    healthy server writes are `frequent`: a line with one is taken only near another
    interesting line or the start, and there not often, and of one rank seldom. Lines with
    an `awaited` literal are all taken. Each may change with every line.
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
    ) -> bool | None:
        """One line without its LF; True if from here on only lines with an awaited text count.

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
        self._told: dict[bytes, int] = {}  # with each frequent literal, in the whole log
        self._over = False  # only what the sink awaits counts any more
        self._base = 0  # offset of the chunk at hand
        self._number = 0  # lines before `_counted`
        self._counted = 0  # offset
        self.offset = 0  # of the first byte not yet handed on

    @property
    def lines(self) -> int:
        """How many have ended so far."""
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
        if self._tail:
            self._finish()
        self.offset = self._base

    def _feed(self, chunk: bytes) -> None:
        base, start = self._base, 0
        last = chunk.rfind(b"\n") + 1
        if last:
            if self._tail:
                start = chunk.find(b"\n") + 1
                self._keep(chunk[: start - 1])
                self._finish()
            if last > start:
                self._block(chunk, start, last, base)
            self._count(chunk, len(chunk), base)
            self.offset = base + last
        if last < len(chunk):
            self._keep(chunk[last:])
        self._base = self._counted = base + len(chunk)

    def _keep(self, part: bytes) -> None:
        room = LONGEST - len(self._tail)
        self._tail += part[:room]
        self._skipped += max(0, len(part) - room)

    def _finish(self) -> None:
        """Hand on a line that arrived in pieces."""
        line = bytes(self._tail) + b"\n"
        self._tail.clear()
        self._skipped = 0
        self._block(line, 0, len(line), self.offset)

    def _block(self, block: bytes, start: int, stop: int, base: int) -> None:
        """Search whole lines; each ends with LF, and `base` is the offset of the block."""
        at, take = start, self._sink.take
        while at < stop:
            if self._over:
                at = self._rest(block, at, stop, base)
                continue
            marks, upto = self._finder.scan(block, at, stop)
            for begin, end, seen, hits in marks:
                if at < begin:
                    at = self._between(block, at, begin, base)
                counted = self._counted - base
                if begin - counted < FEW:  # as _count does, without a call
                    if begin > counted:
                        self._number += block.count(b"\n", counted, begin)
                        self._counted = base + begin
                else:
                    self._count(block, begin, base)
                over = take(block[begin:end], base + begin, self._number + 1, hits, seen)
                at = end + 1
                self._near = base + at + NEAR
                if self._taken:
                    self._taken.clear()
                if over:
                    self._over = True
                    break
            else:
                at = self._between(block, at, upto, base)

    def _count(self, block: bytes, at: int, base: int) -> None:
        """Number the lines up to here."""
        start = self._counted - base
        if at <= start:  # in a line that began before this chunk
            return
        if at - start < FEW:
            self._number += block.count(b"\n", start, at)
        else:
            self._number += self._finder.line_ends(block, start, at)
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

    def _rest(self, block: bytes, at: int, stop: int, base: int) -> int:
        """Hand on lines with an awaited literal, and no others, as long as these are enough."""
        sink = self._sink
        places: dict[bytes, int] = {}  # where each literal comes next; `stop` if it does not
        while self._over:
            place = _soonest(block, sink.awaited, at, stop, places)
            if place == stop:
                return stop
            start = block.rfind(b"\n", at, place) + 1 or at
            at = block.find(b"\n", place)
            self._count(block, start, base)
            over = sink.take(block[start:at], base + start, self._number + 1, (), ())
            self._over = bool(over)
            at += 1
        return at

    def _unmarked(self, block: bytes, at: int, stop: int, base: int) -> int:
        """Hand on lines with a frequent or awaited literal; return where to go on."""
        sink, taken, told = self._sink, self._taken, self._told
        limit = max(at, min(stop, self._near - base))
        places: dict[bytes, int] = {}  # where each literal comes next; `stop` if it does not
        while not sink.hungry:
            # Before the others: one may be both.
            place = _soonest(block, sink.awaited, at, stop, places)
            sure, frequent = place, sink.frequent
            for text in frequent:
                if taken.get(text, 0) < ENOUGH:
                    if (at_next := places.get(text, -1)) < at:
                        at_next = block.find(text, at, limit)
                        places[text] = at_next = stop if at_next < 0 else at_next
                    place = min(place, at_next)
            if place == stop:
                return stop
            start = block.rfind(b"\n", at, place) + 1 or at
            at = block.find(b"\n", place)
            line = block[start:at]
            wanted = sure < at
            tag = _tag(line, place - start)
            for text in frequent:
                if text in line:
                    taken[text] = taken.get(text, 0) + 1
                    alike = taken[tag + text] = taken.get(tag + text, 0) + 1
                    known = told.get(text, 0)
                    if alike <= (ALIKE if known < MANY else 1):
                        told[text] = known + 1
                        wanted = True
            if wanted:
                self._count(block, start, base)
                sink.take(line, base + start, self._number + 1, (), ())
            at += 1
        return at


def _soonest(
    block: bytes, texts: Sequence[bytes], at: int, stop: int, places: dict[bytes, int]
) -> int:
    """Where the first of these texts comes next; `stop` if none does.

    `places` remembers where each comes next, so that one is searched for again only behind it.
    """
    soonest = stop
    for text in texts:
        if (place := places.get(text, -1)) < at:
            place = block.find(text, at, stop)
            places[text] = place = stop if place < 0 else place
        soonest = min(soonest, place)
    return soonest


def _tag(line: bytes, place: int) -> bytes:
    """Who prints the record whose message begins here, as `[… 12:00:00 DP1 TP3] ` says it."""
    tag = line[line.rfind(b":", 0, place) + 3 : place] if line[place - 2 : place] == b"] " else b""
    return tag + b"\n"  # no literal has that

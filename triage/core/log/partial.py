"""Joins the pieces in which a container runtime writes a long line.

In:  lines from a scanner. Out: the same to another sink, the pieces of one line as one.
Not: what else a runtime puts around a line (lines.py).

containerd and CRI-O mark a piece with P and the last with F; Docker's JSON has no line
end in a piece. Both cut at 16 kB. A joined line has the place of its first piece.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from triage.core.log.finder import BEHIND, LONG
from triage.core.log.scan import LONGEST, Sink
from triage.core.records import dataclass
from triage.core.regex import regex

LITERALS = frozenset((" stdout P ", " stderr P "))
_CRI = regex(rb"(?P<head>[\dT:.+\-Z]{19,40} (?P<stream>stdout|stderr)) (?P<kind>[FP]) ")
_DOCKER = b'{"log":"'
_DOCKER_END = regex(rb'(?P<end>\\n)?","(?:attrs|stream|time)":[^{}]*(?:\{[^{}]*\}[^{}]*)?\}\s*\Z')
_TAIL = 600  # bytes in which the fields behind a Docker record's text stand
_LONG = 8000  # bytes; a shorter Docker record without a line end is no piece
_RECORDS = (b" stdout P ", b" stderr P ", _DOCKER)
_PATIENCE = 64  # lines of others between two pieces


@dataclass(frozen=True, slots=True)
class _Piece:
    """What a line is, if a runtime cut it: its stream, whether more follows, where its text is."""

    stream: bytes
    more: bool
    start: int
    stop: int


class _Open:
    """A line of which the end has not come; its text so far ends at `stop`."""

    def __init__(self, raw: bytes, offset: int, number: int, stop: int) -> None:
        self.raw, self.offset, self.number, self.stop = raw, offset, number, stop
        self.hits: list[int] = []
        self.seen: set[int] = set()
        self.waited = 0

    def add(self, raw: bytes, piece: _Piece, hits: Sequence[int], *, found: bool) -> None:
        """The next piece; if something was found in it, its start is looked at, too."""
        shift = self.stop - piece.start
        behind = self.raw[self.stop :] if piece.more else raw[piece.stop :]
        self.raw = self.raw[: self.stop] + raw[piece.start : piece.stop] + behind
        if found:
            self.hits += [self.stop + BEHIND, *(hit + shift for hit in hits)]
        self.stop += piece.stop - piece.start


class Joined:
    """A Sink in front of another."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._open: dict[bytes, _Open] = {}
        self._cut = False  # whether a line had the shape of a runtime's record
        self._over = False  # whether lines without an awaited literal are left out

    @property
    def hungry(self) -> bool:
        """As the other, and while a line is open."""
        return bool(self._open) or self._sink.hungry

    @property
    def frequent(self) -> Sequence[bytes]:
        """As the other."""
        return self._sink.frequent

    @property
    def awaited(self) -> Sequence[bytes]:
        """As the other; where that wants nothing else, what a runtime's record has, too."""
        return (*self._sink.awaited, *_RECORDS) if self._over else self._sink.awaited

    def take(
        self, raw: bytes, offset: int, number: int, hits: Sequence[int], seen: Collection[int]
    ) -> bool | None:
        """One physical line, from the scanner."""
        if not self._open and not raw.startswith(_DOCKER) and raw.find(b" std", 19, 60) < 0:
            # As nearly all.
            self._over = bool(self._sink.take(raw, offset, number, hits, seen)) and not self._cut
            return self._over
        self._over = False
        self._record(raw, offset, number, hits, seen)
        return False

    def _record(
        self, raw: bytes, offset: int, number: int, hits: Sequence[int], seen: Collection[int]
    ) -> None:
        """A line that may be a runtime's record; where there are some, all pieces are wanted."""
        self._cut = True
        piece = _piece(raw, short=bool(self._open))
        if piece is None or (not piece.more and piece.stream not in self._open):
            wanted = not self._open or self._sink.hungry or bool(seen)
            self._wait()
            if wanted:
                self._sink.take(raw, offset, number, hits, seen)
            return
        one = self._open.get(piece.stream)
        if one is None:
            one = self._open[piece.stream] = _Open(raw, offset, number, piece.stop)
            one.hits += hits
        else:
            one.add(raw, piece, hits, found=bool(seen))
        one.seen.update(seen)
        one.waited = 0
        if not piece.more or len(one.raw) > LONGEST:
            self._give(piece.stream)

    def close(self) -> None:
        """The log has ended, and with it every open line."""
        for stream in tuple(self._open):
            self._give(stream)

    def _wait(self) -> None:
        for stream, one in tuple(self._open.items()):
            one.waited += 1
            if one.waited > _PATIENCE:
                self._give(stream)

    def _give(self, stream: bytes) -> None:
        one = self._open.pop(stream)
        # A text that was cut in two was not seen: a place of interest says that some may be.
        hits = one.hits or ([one.stop] if len(one.raw) <= LONG else [])
        self._sink.take(one.raw, one.offset, one.number, hits, one.seen)


def _piece(raw: bytes, *, short: bool) -> _Piece | None:
    """What the line is, if it has the shape of a runtime's record; `short` ones count, too."""
    if raw.startswith(_DOCKER):
        return _docker(raw) if short or len(raw) >= _LONG else None
    if raw.find(b" std", 19, 60) < 0 or (found := _CRI.match(raw)) is None:
        return None
    return _Piece(found["stream"], found["kind"] == b"P", found.end(), len(raw))


def _docker(raw: bytes) -> _Piece | None:
    found = _DOCKER_END.search(raw, max(len(_DOCKER), len(raw) - _TAIL))
    if found is None:
        return None
    stream = b"stderr" if b'"stream":"stderr"' in found.group() else b"stdout"
    more = found["end"] is None and len(raw) >= _LONG
    return _Piece(stream, more, len(_DOCKER), found.start())  # a last piece keeps its line end

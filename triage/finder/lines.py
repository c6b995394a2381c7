"""Lines whose literals are known: a process that reads many logs meets most lines again.

In:  blocks of whole lines, and what searches those that are new. Out: marks, equal to its own.
Not: searching; and no large block, whose lines are worth no memory.

Behind the head of an engine's record, `[2026-07-01 12:00:00 TP3] `, ranks and launches print
the same. To look a line up takes half as long as to search it and to be told of each clue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from triage.core.log.finder import Mark
from triage.core.regex import regex

_SMALL, _LARGE = 1 << 12, 1 << 16  # bytes of a block that is looked up line by line
_PAYS = 1 << 20  # bytes of such blocks, before that pays
_LONGEST = 400  # bytes of a line that is remembered
_MOST = 8192
# The rest of the line is remembered with the end of its head, with which literals may begin.
_HEAD = regex(rb"\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?: (?:DP|PP|TP|EP)\d{1,3}){0,3}(?=\] )")
_IN_A_HEAD = regex(rb"[\[\d\-: DPTE]+(?:\]|$)")

Search = Callable[[bytes, int, int], tuple[list[Mark], int]]
_NOTHING: frozenset[int] = frozenset()


class Lines:
    """Numbers of the literals in lines, by what these say.

    Args:
        texts: The literals.
    """

    def __init__(self, texts: Sequence[bytes]) -> None:
        self._texts = texts
        self._known: dict[bytes, Set[int]] = {}
        self._seen = 0  # bytes of blocks so far
        self._beheads: bool | None = None  # whether no literal reaches into a head

    def pays(self, size: int) -> bool:
        """Whether a block of this size is looked up, line by line."""
        if not _SMALL <= size <= _LARGE:
            return False
        self._seen += size
        return self._seen > _PAYS

    def marks(self, block: bytes, start: int, stop: int, search: Search) -> list[Mark]:
        """The marks of the block; `search` gives them for the lines that are new."""
        if self._beheads is None:
            self._beheads = not any(map(_IN_A_HEAD.match, self._texts))
        known, head = self._known, _HEAD.match
        marks: list[Mark] = []
        new: list[tuple[int, bytes, bytes]] = []  # where a line begins, its key, all of it
        at = start
        for raw in block[start:stop].split(b"\n")[:-1]:
            key = raw
            if raw.startswith(b"[20") and self._beheads and (found := head(raw)) is not None:
                key = raw[found.end() :]
            if (seen := known.get(key)) is None:
                new.append((at, key, raw))
            elif seen:
                marks.append(Mark(at, at + len(raw), seen, []))
            at += len(raw) + 1
        if new:
            marks += self._of_new(new, search)
            marks.sort(key=_start)
        return marks

    def _of_new(self, new: Sequence[tuple[int, bytes, bytes]], search: Search) -> list[Mark]:
        """The marks of these lines, which are remembered."""
        block = b"\n".join([*(raw for _, _, raw in new), b""])
        found: dict[int, Mark] = {}
        at = 0
        while at < len(block):
            some, at = search(block, at, len(block))
            found.update((mark.start, mark) for mark in some)
        if len(self._known) + len(new) > _MOST:
            self._known.clear()
        marks: list[Mark] = []
        at = 0
        for start, key, raw in new:
            mark = found.get(at)
            if mark is not None:
                marks.append(mark._replace(start=start, stop=start + len(raw)))
            if len(raw) <= _LONGEST and not _is_dated(raw):
                self._known[key] = _NOTHING if mark is None else mark.seen
            at += len(raw) + 1
        return marks


def _is_dated(raw: bytes) -> bool:
    """Whether a collector's time is in front, so that the line hardly comes again."""
    return (raw[4:5] == b"-" and raw[:4].isdigit()) or raw[3:4] == raw[6:7] == b" "


def _start(mark: Mark) -> int:
    return mark.start

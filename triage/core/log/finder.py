"""Finds which lines of a block hold which literals.

In:  byte strings; blocks of whole lines. Out: Mark values, one a line with a literal.
Not: cutting a file into blocks (scan.py) or reading lines (gather.py).

Two finders give equal marks: `Plain` here, with nothing but `bytes.find`, and the
one of `triage.finder`, a database of clues, which makes its marks with `Marker`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set

from triage.core.typed import NamedTuple, Protocol

LONG = 4096  # bytes of a line that are looked at, from its start and after each place of interest
WINDOWS = 6  # places of interest of a longer line
BEHIND = 1024  # of LONG, what is looked at before such a place
_EARLY = 1 << 15  # bytes of a very long line that are searched first
_LONG_WORDS = 1 << 16  # bytes of different words in a part, beyond which there is a long one
_PART = 1 << 16  # bytes that Plain searches at a time
_MOST = 2048  # marks that Marker holds at a time
_FEW = 1 << 12  # bytes in which line ends are counted one by one


class Mark(NamedTuple):
    """A line with a literal: `block[start:stop]`, without its LF.

    `seen` are the numbers of the literals in it. Of a line longer than LONG they are
    those in its first LONG bytes and in windows after the places in `hits`: ends of
    literals, counted from the line's start.
    """

    start: int
    stop: int
    seen: Set[int]
    hits: list[int]


class Literals:
    """What a finder looks for.

    A smaller set of them, the triggers, has the same effect: one of it is in every line with
    any text. `implied` are those triggers that are part of other texts, with the numbers of these.
    `clues` are pieces of text of which one is in every line with a trigger, each with the
    numbers of the triggers that it is a piece of (clues.py). `words` are words of triggers,
    that is letters between two characters that are none, each with the numbers of those
    that hold it so; `parts` the same for the other triggers and pieces of a word.
    """

    __slots__ = ("clues", "implied", "parts", "texts", "words")

    def __init__(
        self,
        texts: Sequence[str],
        implied: Sequence[tuple[int, Sequence[int]]],
        clues: Sequence[tuple[str, Sequence[int]]],
        words: Mapping[str, Sequence[int]],
        parts: Mapping[str, Sequence[int]],
    ) -> None:
        self.texts, self.implied, self.clues = texts, implied, clues
        self.words, self.parts = words, parts

    def __eq__(self, other: object) -> bool:
        """Whether the same is looked for; all else follows from the texts."""
        return isinstance(other, Literals) and [*self.texts] == [*other.texts]

    def __hash__(self) -> int:
        """Of few texts: to look at all takes a while."""
        return hash((len(self.texts), *self.texts[:1], *self.texts[-1:]))

    def and_also(self, texts: Sequence[str]) -> Literals:
        """The same and some texts more, each its own trigger."""
        if not texts:
            return self
        numbers = range(len(self.texts), len(self.texts) + len(texts))
        words, parts = _told_by(dict(zip(numbers, texts, strict=True)))
        return Literals(
            (*self.texts, *texts),
            self.implied,
            (*self.clues, *((t, (n,)) for n, t in zip(numbers, texts, strict=True))),
            _merged(self.words, words),
            _merged(self.parts, parts),
        )


class Finder(Protocol):
    """Knows some literals."""

    def scan(self, block: bytes, start: int, stop: int) -> tuple[list[Mark], int]:
        """Marks of `block[start:stop]`, whole lines, in order, and how far it came.

        It may end early, at a line's start, so that a list of marks stays short.
        """

    def line_ends(self, block: bytes, start: int, stop: int) -> int:
        """How many LFs are in `block[start:stop]`."""

    def close(self) -> None:
        """Give back what it holds; it finds nothing afterwards."""


Compile = Callable[[Literals], Finder]
_DIGITS = b"0123456789"
# Every byte that is no letter a space: what is in a text, is in it so, too.
_LETTERS = bytes(char if 65 <= char & ~32 <= 90 else 32 for char in range(256))  # noqa: PLR2004


def literals_of(texts: Sequence[str]) -> Literals:
    """Literals with their triggers."""
    from triage.core.log.clues import clues_of  # noqa: PLC0415  an index has them

    numbers = sorted(range(len(texts)), key=lambda n: (len(texts[n]), texts[n]))
    groups: dict[int, list[int]] = {}
    for number in numbers:
        inside = [shorter for shorter in groups if texts[shorter] in texts[number]]
        for shorter in inside:
            groups[shorter].append(number)
        if not inside:
            groups[number] = []
    triggers = {number: texts[number] for number in groups}
    return Literals(
        tuple(texts),
        tuple((number, tuple(others)) for number, others in groups.items() if others),
        clues_of(triggers),
        *_told_by(triggers),
    )


def _told_by(texts: Mapping[int, str]) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """`words` and `parts` of Literals."""
    words: dict[str, list[int]] = {}
    parts: dict[str, list[int]] = {}
    for number, text in texts.items():
        pieces = _pieces(text.encode())
        whole = max(pieces[1:-1], key=len, default="")
        if whole:
            words.setdefault(whole, []).append(number)
        else:
            parts.setdefault(max(pieces, key=len), []).append(number)
    return words, parts


def _pieces(text: bytes) -> list[str]:
    """Its words and, at both ends, pieces of words, each of which may be empty."""
    return text.translate(_LETTERS).decode("ascii").split(" ")


def _merged(
    one: Mapping[str, Sequence[int]], other: Mapping[str, Sequence[int]]
) -> dict[str, Sequence[int]]:
    return {**one, **{word: (*one.get(word, ()), *numbers) for word, numbers in other.items()}}


def _words(text: bytes) -> tuple[bytes, bytes]:
    """A word that the text holds as a whole, if any; and its longest piece without a space."""
    pieces = text.split(b" ")
    if len(pieces) == 1:
        return b"", text
    return max(pieces[1:-1], key=len, default=b""), max(pieces, key=len)


class Plain:
    """Finds literals one after the other."""

    def __init__(self, literals: Literals) -> None:
        self._literals = literals
        self._tables = _Tables(literals)
        self._texts = self._tables.texts
        self._needed: dict[int, tuple[bytes, list[str], str, str, bytes]] = {}  # of some texts
        self._clues: list[tuple[bytes, bytes, Sequence[int]]] = []  # these are for long lines
        self._words: dict[int, tuple[bytes, bytes]] = {}  # of texts whose clue was seen
        self._alphabet = b""

    def close(self) -> None:
        """Nothing to give back."""

    def line_ends(self, block: bytes, start: int, stop: int) -> int:
        """See Finder."""
        if stop - start < _FEW:
            return block.count(b"\n", start, stop)
        # Replacing is four times as fast as counting, which goes byte by byte.
        part = block[start:stop]  # no copy where it is the whole block
        return len(part) - len(part.replace(b"\n", b""))

    def scan(self, block: bytes, start: int, stop: int) -> tuple[list[Mark], int]:
        """See Finder."""
        likely = self._likely
        if stop - start > _PART:
            stop = block.find(b"\n", start + _PART, stop) + 1 or stop
            if stop - start > 2 * _PART:
                if mark := self._early(block, start, stop):
                    return [mark], mark.stop + 1
                likely = self._likely_in_long
        lines: dict[int, list[int]] = {}
        begin = end = -1
        for number, text in likely(block, start, stop):
            at = block.find(text, start, stop)
            while at >= 0:
                if not begin <= at < end:  # in the line that was found last, often
                    begin = block.rfind(b"\n", start, at) + 1 or start
                    end = block.find(b"\n", at, stop)
                lines.setdefault(begin, []).append(number)
                at = block.find(text, end, stop)
        return [self._mark(block, begin, stop, lines[begin]) for begin in sorted(lines)], stop

    def _likely(self, block: bytes, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """Texts that may be there, as their words are; most are not.

        Lines repeat each other, but for numbers, and words do so even more: looking through
        what is different among them costs a fraction of looking through all bytes.
        """
        part = block[start:stop]
        words = set(part.translate(_LETTERS).decode("ascii").split())
        joined = " ".join(words)
        lines = b"\n".join(set(part.translate(None, _DIGITS).split(b"\n")))
        known, needed = self._literals, self._needed
        found = [number for word in known.words.keys() & words for number in known.words[word]]
        for piece, numbers in known.parts.items():
            if piece in joined:
                found += numbers
        for number in found:
            text, whole, first, last, told = needed.get(number) or self._split(number)
            if words.issuperset(whole) and first in joined and last in joined and told in lines:
                yield number, text

    def _split(self, number: int) -> tuple[bytes, list[str], str, str, bytes]:
        """A text: its words, the pieces at its ends, and it without digits."""
        text = self._texts[number]
        first, *inner = _pieces(text)
        last = inner.pop() if inner else ""
        whole = [word for word in inner if word]
        found = self._needed[number] = text, whole, first, last, text.translate(None, _DIGITS)
        return found

    def _likely_in_long(self, block: bytes, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """The same for a very long line, which may be all words of a letter, or one word."""
        self._clues = self._clues or [
            (*_words(text.encode()), owners) for text, owners in self._literals.clues
        ]
        words = set(block[start:stop].split())
        joined = b"\n".join(words)
        clues = self._clues
        if len(joined) > _LONG_WORDS:
            # No text at all, but a line that is one word: few texts have only its characters.
            self._alphabet = self._alphabet or bytes(set("".join(self._literals.texts).encode()))
            known = bytes([char for char in self._alphabet if char in joined])
            clues = [one for one in clues if not one[1].translate(None, known)]
        for clue_whole, clue_part, owners in clues:
            if clue_whole not in words if clue_whole else clue_part not in joined:
                continue
            for number in owners:
                text = self._texts[number]
                whole, part = self._words.get(number) or self._split_at_spaces(number, text)
                if whole in words if whole else part in joined:
                    yield number, text

    def _split_at_spaces(self, number: int, text: bytes) -> tuple[bytes, bytes]:
        found = self._words[number] = _words(text)
        return found

    def _early(self, block: bytes, start: int, stop: int) -> Mark | None:
        """The mark of a very long line if its beginning has all that is looked at, else None."""
        if block.find(b"\n", start, start + _EARLY) >= 0:
            return None
        part = block[start : start + _EARLY] + b"\n"
        marks, _ = self.scan(part, 0, len(part))
        if not marks or len(marks[0].hits) < WINDOWS or marks[0].hits[-1] + LONG > _EARLY:
            return None
        return Mark(start, block.find(b"\n", start + _EARLY, stop), marks[0].seen, marks[0].hits)

    def _mark(self, block: bytes, start: int, stop: int, triggers: Sequence[int]) -> Mark:
        stop = block.find(b"\n", start, stop)
        if stop - start > LONG:
            seen = set(triggers)
            for number in triggers:
                seen.update(self._tables.implied.get(number, ()))
            return self._long(block, start, stop, seen)
        return Mark(start, stop, _Seen(block[start:stop], set(triggers), self._tables), [])

    def _long(self, block: bytes, start: int, stop: int, numbers: set[int]) -> Mark:
        """The mark of a long line, from the ends of its literals in ascending order."""
        ends: dict[int, int] = {}  # where each literal ends next
        for number in numbers:
            text = self._texts[number]
            if (at := block.find(text, start, stop)) >= 0:
                ends[number] = at + len(text)
        seen: set[int] = set()
        hits: list[int] = []
        upto = start + LONG
        while ends:
            inside = [number for number, end in ends.items() if end <= upto]
            if not inside:
                if len(hits) == WINDOWS:
                    break
                end = min(ends.values())
                hits.append(end - start)
                upto = end + LONG - BEHIND
            seen.update(inside)
            for number in inside:
                text = self._texts[number]
                at = block.find(text, max(upto - len(text) + 1, start), stop)
                if at >= 0:
                    ends[number] = at + len(text)
                else:
                    del ends[number]
        return Mark(start, stop, seen, hits)


class _Encoded(dict[int, bytes]):
    """Texts as bytes, by number, each made when it is asked for: a short log asks for few."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__()
        self._texts = texts

    def __missing__(self, number: int) -> bytes:
        made = self[number] = self._texts[number].encode()
        return made


class _Tables:
    """Which literals a clue stands for, and which others they are part of.

    `owners` are those of each clue; without them the literals are their own clues.
    """

    __slots__ = ("implied", "owners", "texts")

    def __init__(self, literals: Literals, owners: Sequence[Sequence[int]] = ()) -> None:
        self.texts = _Encoded(literals.texts)
        self.implied = dict(literals.implied)
        self.owners = owners


class _Seen(Set[int]):
    """Numbers of the literals in a line, worked out when somebody asks which.

    An exception has one of hundreds, and most lines repeat what another said.
    """

    __slots__ = ("_clues", "_line", "_numbers", "_tables")

    def __init__(self, line: bytes, clues: set[int], tables: _Tables) -> None:
        self._line, self._clues, self._tables = line, clues, tables
        self._numbers: frozenset[int] | None = None

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[int]:
        return iter(self._all())

    def __contains__(self, number: object) -> bool:
        return number in self._all()

    def _all(self) -> frozenset[int]:
        if self._numbers is None:
            texts, line = self._tables.texts, self._line
            owners, implied = self._tables.owners, self._tables.implied
            found: Collection[int] = self._clues
            if owners:
                found = [n for clue in self._clues for n in owners[clue] if texts[n] in line]
            more = {other for n in found for other in implied.get(n, ())}
            self._numbers = frozenset(found).union([n for n in more if texts[n] in line])
        return self._numbers


class Marker:
    """Turns places of clues, in ascending order of their ends, into marks.

    A line with a clue is searched for the literals that the clue is a piece of. Where a
    line is LONG, it stops, and another finder has to look at that line.
    """

    def __init__(self, literals: Literals) -> None:
        clues = [owners for _, owners in literals.clues]
        self._tables = _Tables(literals, [*clues, ()])  # the last: of no text
        # What is in the line if a literal of the clue is; made when the clue is first found.
        self._texts: list[Sequence[bytes] | None] = [
            (b"",) if [clue] == [literals.texts[n] for n in owners] else None
            for clue, owners in (*literals.clues, ("", ()))
        ]
        self._block = b""
        self._base = self._limit = self._stop = 0
        self._end = 0  # of the line at hand, as the places that are told count
        self._line = b""
        self._clues: set[int] = set()  # in the line at hand
        self._marked = False  # whether that has a literal
        self.marks: list[Mark] = []
        self.resume = 0
        self.long = False  # the line at `resume` is for another

    def begin(self, block: bytes, start: int, stop: int) -> None:
        """The places that follow are counted from `start`, a line's start."""
        self.marks, self.long = [], False
        self._block, self._base, self._limit = block, start, stop
        self._stop, self._end = start - 1, -1
        self.resume = stop

    def found(self, clue: int, _start: int, end: int, _flags: int, _context: object) -> bool:
        """A clue ends here; True if the search shall go on at `resume` instead."""
        if end <= self._end:
            self._clues.add(clue)
            if self._marked:
                return False
        elif self._next(end + self._base):
            return True
        else:
            self._clues = {clue}
        line = self._line
        for text in self._texts[clue] or self._split(clue):
            if text in line:
                self._marked = True
                seen = _Seen(line, self._clues, self._tables)
                stop = self._stop
                self.marks.append(Mark(stop - len(line), stop, seen, []))
                return False
        return False

    def _next(self, end: int) -> bool:
        """Go on to the line with this place; True if that is for another, or enough for now."""
        block, last = self._block, self._stop + 1
        if len(self.marks) >= _MOST:
            self.resume = last
            return True
        start = block.rfind(b"\n", last, end) + 1 or last
        self._stop = stop = block.find(b"\n", end, self._limit)
        if stop - start > LONG:
            self.resume, self.long = start, True
            return True
        self._end = stop - self._base
        self._line, self._marked = block[start:stop], False
        return False

    def _split(self, clue: int) -> Sequence[bytes]:
        """The literals that the clue is a piece of."""
        texts = [self._tables.texts[number] for number in self._tables.owners[clue]]
        self._texts[clue] = texts
        return texts


class LongMarker:
    """The mark of a LONG line, from places of literals in ascending order of their ends.

    A line with 200,000 of them costs no more than its first windows, because `found`
    then asks to be called no more.
    """

    def __init__(self, start: int, stop: int) -> None:
        """Places are counted from `start`, the line's start."""
        self._upto = LONG
        self._seen: set[int] = set()
        self._mark = Mark(start, stop, self._seen, [])

    @property
    def marks(self) -> list[Mark]:
        """The mark, if there was a literal."""
        return [self._mark] if self._seen else []

    def found(self, number: int, _start: int, end: int, _flags: int, _context: object) -> bool:
        """A literal ends here; True if the search shall end."""
        if end > self._upto:
            if len(self._mark.hits) == WINDOWS:
                return True
            self._mark.hits.append(end)
            self._upto = end + LONG - BEHIND
        self._seen.add(number)
        return False

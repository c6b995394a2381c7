"""Tries the patterns of the causes on cleaned lines.

In:  Cause values, and the text of a line.
Out: for each matching cause its index, and what its pattern captured.
Not: deciding whether a match is the reason (cascade.py).

A pattern is tried only on lines that hold one of the literals without which it
cannot match, so the cost of a line hardly depends on the number of causes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from triage.core.causes import Cause, Role
from triage.core.log.finder import Literals, literals_of
from triage.core.records import dataclass
from triage.core.regex import compiled
from triage.core.typed import TypeVar, overload


class Use:
    """What a match of a pattern says about its cause."""

    MATCH = 0  # the line can be the reason
    CONTEXT = 1  # the cause holds only if such a line came before
    ABSENT = 2  # the cause holds only if no such line follows
    BENIGN = 3  # the line is harmless


_LOOKED_FOR = (Use.MATCH, Use.CONTEXT)
# In every other line of a healthy server: a literal with one of these is looked for only
# near other lines of interest (scan.Sink), as in a start.
ORDINARY = ("Prefill batch", "Decode batch", "#new-seq", "#running-req", "GET /health",
            "GET /ready", "GET /metrics", "POST /", "200 OK")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern of a cause.

    `text` is set if it is nothing but this text. `needs` are literals of which a line
    must have one, empty if there are none.
    """

    cause: int
    use: int
    pattern: str
    text: str | None
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """What a set of causes looks for, made once and kept with them.

    `texts`, `implied`, `clues`, `words` and `parts` are those of finder.Literals; `owners`
    are, for each number of a literal, those of the patterns that need it, most often one;
    literals of the program itself come last and have none. `near` are the patterns with a
    literal that is ordinary, and `frequent` what is ordinary in them. `uses` are those of all
    patterns, `bare` the patterns that need no literal. `doubts` is what the ABSENT patterns
    need and `harmless` what the BENIGN ones do, with the empty text, which is in each line, if
    one needs nothing.

    A line is not looked for because it is harmless, what refutes a cause only once there
    is something to refute, and what is ORDINARY only near other lines: all three are in
    much of what a healthy server writes.
    """

    texts: Sequence[str]
    implied: Sequence[tuple[int, Sequence[int]]]
    clues: Sequence[tuple[str, Sequence[int]]]
    words: Mapping[str, Sequence[int]]
    parts: Mapping[str, Sequence[int]]
    patterns: Sequence[Pattern]
    owners: Sequence[int | Sequence[int]]
    near: Sequence[int]
    frequent: Sequence[str]
    uses: Sequence[int]
    bare: Sequence[int]
    absent: Sequence[tuple[int, int]]  # a cause, and a pattern that refutes it
    doubts: Sequence[str]
    harmless: Sequence[str]


def table_of(causes: Sequence[Cause], fixed: Collection[str] = ()) -> Table:
    """The table of these causes, and of some literals of the program itself."""
    from triage.core.log.literals import cover, only_text  # noqa: PLC0415  an index has the table

    numbers: dict[str, int] = {}
    patterns: list[Pattern] = []
    owners: list[list[int]] = []
    for index, cause in enumerate(causes):
        own = Use.BENIGN if cause.role is Role.BENIGN else Use.MATCH
        uses = ((own, cause.patterns), (Use.CONTEXT, cause.context), (Use.ABSENT, cause.absent))
        for use, pattern in ((use, pattern) for use, some in uses for pattern in some):
            needs = tuple(sorted(cover(pattern) or ()))
            for literal in needs if use in _LOOKED_FOR else ():
                if is_ordinary(literal):
                    continue
                number = numbers.setdefault(literal, len(numbers))
                if number == len(owners):
                    owners.append([])
                owners[number].append(len(patterns))
            patterns.append(Pattern(index, use, pattern, only_text(pattern), needs))
    near = [n for n, p in enumerate(patterns)
            if p.use in _LOOKED_FOR and any(map(is_ordinary, p.needs))]  # fmt: skip
    parts = [part for part in ORDINARY
             if any(part in text for n in near for text in patterns[n].needs)]  # fmt: skip
    texts = tuple(dict.fromkeys((*numbers, *sorted(fixed))))
    literals = literals_of(texts)

    def needed(use: int) -> tuple[str, ...]:
        some = [p.needs or ("",) for p in patterns if p.use == use]
        return tuple(dict.fromkeys(text for needs in some for text in needs))

    return Table(
        texts=texts,
        implied=literals.implied,
        clues=literals.clues,
        words=literals.words,
        parts=literals.parts,
        patterns=tuple(patterns),
        owners=tuple(own[0] if len(own) == 1 else tuple(own) for own in owners),
        near=tuple(near),
        frequent=tuple(parts),
        uses=tuple(p.use for p in patterns),
        bare=tuple(n for n, p in enumerate(patterns) if not p.needs),
        absent=tuple((p.cause, n) for n, p in enumerate(patterns) if p.use == Use.ABSENT),
        doubts=needed(Use.ABSENT),
        harmless=needed(Use.BENIGN),
    )


def is_ordinary(text: str) -> bool:
    """Whether a healthy server writes lines with this text all the time."""
    return any(part in text for part in ORDINARY)


T = TypeVar("T")


class Made(Sequence[T]):
    """Things that are made when they are asked for.

    Args:
        count: How many there are.
        make: Makes one from its index.
    """

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self._made: list[T | None] = [None] * count
        self._make = make

    def __len__(self) -> int:
        return len(self._made)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple(self[n] for n in range(*index.indices(len(self))))
        found = self._made[index]
        if found is None:
            found = self._made[index] = self._make(range(len(self))[index])
        return found


class Causes(Made[Cause]):
    """Causes with their table."""

    def __init__(self, count: int, make: Callable[[int], Cause], table: Table) -> None:
        super().__init__(count, make)
        self.matchers: dict[frozenset[str], Matcher] = {}  # a process may read many logs
        self.table = table


def matcher_of(causes: Sequence[Cause], fixed: frozenset[str]) -> Matcher:
    """The matcher of these causes; that of a knowledge base is made once."""
    if isinstance(causes, tuple):  # of files, not of the index
        return _of_a_tuple(causes, fixed)
    if not isinstance(causes, Causes):
        return Matcher(causes, fixed)
    if fixed not in causes.matchers:
        causes.matchers[fixed] = Matcher(causes, fixed)
    return causes.matchers[fixed]


# The last few with the tuple that they are of: to compare hundreds of causes would take long,
# and a tuple that is the same object holds the same causes.
_LAST: list[tuple[tuple[Cause, ...], frozenset[str], Matcher]] = []
_FEW = 4


def _of_a_tuple(causes: tuple[Cause, ...], fixed: frozenset[str]) -> Matcher:
    for some, texts, matcher in _LAST:
        if some is causes and texts == fixed:
            return matcher
    made = Matcher(causes, fixed)
    _LAST[:] = [*_LAST[1 - _FEW :], (causes, fixed, made)]
    return made


_Matches = tuple[tuple[int, dict[str, str]], ...]
# What matches a line, with its captures; and the causes that it bears out.
_Tried = tuple[_Matches, tuple[int, ...]]
_NOTHING: _Tried = ((), ())


class Matcher:
    """All patterns of a set of causes.

    Args:
        causes: The knowledge base; a match names its index there.
        fixed: Literals of the program itself, that a scan must find, too.

    Attributes:
        literals: What a finder must look for.
        frequent: What it need not, but a scan near other lines of interest.
        every_line: Whether some pattern has no literal: then every line must be tried.
    """

    def __init__(self, causes: Sequence[Cause], fixed: Collection[str] = ()) -> None:
        self.causes = causes
        table = causes.table if isinstance(causes, Causes) else table_of(causes, fixed)
        added = sorted(set(fixed).difference(table.texts))
        literals = Literals(table.texts, table.implied, table.clues, table.words, table.parts)
        self.literals = literals.and_also(added)
        self._texts = self.literals.texts
        self._patterns, self._owners, self._uses = table.patterns, table.owners, table.uses
        self._always = [n for n in table.bare if table.uses[n] in _LOOKED_FOR]
        self._benign_needs = table.harmless
        self._by_need: dict[str, list[int]] = {}  # of those; made when a line has one
        self._near = table.near
        self._refuting: dict[int, tuple[bytes, ...]] = {}  # made when a line shows the cause
        self._absent: dict[int, list[int]] = {}
        for cause, number in table.absent:
            self._absent.setdefault(cause, []).append(number)
        self._doubts = table.doubts
        self._ordinary = table.frequent
        self.frequent = tuple(part.encode() for part in table.frequent)
        # A context without a literal is found only in lines that are read anyway.
        self.every_line = any(table.uses[n] in (Use.MATCH, Use.ABSENT) for n in table.bare)
        self._numbered: dict[frozenset[str], frozenset[int]] = {}

    def numbers(self, texts: Collection[str]) -> frozenset[int]:
        """Numbers of the literals that are among these texts."""
        key = frozenset(texts)
        if key not in self._numbered:
            self._numbered[key] = frozenset([n for n, t in enumerate(self._texts) if t in key])
        return self._numbered[key]

    def frequent_once_up(self) -> tuple[bytes, ...]:
        """Of `frequent`, what is wanted once the server came up and hangs in its start no more."""
        patterns = [self._patterns[n] for n in self._near]
        needs = [p.needs for p in patterns if not self.causes[p.cause].hang]
        return tuple(
            part.encode()
            for part in self._ordinary
            if any(part in t for some in needs for t in some)
        )

    def match(
        self, text: str, seen: Collection[int] | None = None
    ) -> Iterator[tuple[int, dict[str, str]]]:
        """Index of each cause with a pattern in the text, and the pattern's named groups.

        Args:
            text: A cleaned line.
            seen: Numbers of the literals in its raw line; None tries every literal.
        """
        return iter(self.tried(text, seen)[0])

    def benign(self, text: str) -> Iterator[tuple[int, dict[str, str]]]:
        """As `match`, for the causes that are none: the line is harmless."""
        return self._search(self._maybe_benign(text), text)

    def _maybe_benign(self, text: str) -> list[int]:
        """The patterns of harmless lines that the text has a need of."""
        needs = list(filter(text.__contains__, self._benign_needs))
        if not needs:
            return []
        if not self._by_need:
            for number in (n for n, use in enumerate(self._uses) if use == Use.BENIGN):
                for need in self._patterns[number].needs or ("",):
                    self._by_need.setdefault(need, []).append(number)
        return sorted({n for need in needs for n in self._by_need[need]})

    def refuting(self, cause: int) -> tuple[bytes, ...]:
        """Literals of the lines that refute a cause: it holds only if none follows."""
        if cause not in self._absent:
            return ()
        if cause not in self._refuting:
            found = (self._patterns[number].needs for number in self._absent[cause])
            self._refuting[cause] = tuple(text.encode() for needs in found for text in needs)
        return self._refuting[cause]

    def doubts(self, text: str) -> bool:
        """Whether the line may say of any cause that it does not hold."""
        return any(map(text.__contains__, self._doubts))

    def refutes(self, text: str, cause: int) -> bool:
        """Whether the line says that the cause, found before, does not hold."""
        numbers = self._with_needs(self._absent.get(cause, ()), text)
        return bool(numbers) and next(self._search(numbers, text), None) is not None

    def _with_needs(self, numbers: Collection[int], text: str) -> list[int]:
        patterns, contained = self._patterns, text.__contains__
        return [
            n for n in numbers if not (needs := patterns[n].needs) or any(map(contained, needs))
        ]

    def within(self, text: str) -> frozenset[int]:
        """Numbers of all literals in a text."""
        contained = text.__contains__
        return frozenset([number for number, one in enumerate(self._texts) if contained(one)])

    def present(self, text: str, seen: Collection[int]) -> frozenset[int]:
        """Those of these numbers whose literal is in the text."""
        texts = self._texts
        return frozenset([number for number in seen if texts[number] in text])

    def tried(self, text: str, seen: Collection[int] | None = None) -> _Tried:
        """What matches, as `match` gives it, and what holds only if such a line came before."""
        owners, texts = self._owners, self._texts
        tried = set(self._always)
        for number in range(len(owners)) if seen is None else seen:
            if number < len(owners) and texts[number] in text:
                own = owners[number]
                tried.update((own,) if isinstance(own, int) else own)
        if any(map(text.__contains__, self._ordinary)):
            tried.update(self._with_needs(self._near, text))
        if not tried:
            return _NOTHING
        numbers, uses = sorted(tried), self._uses
        matched = [n for n in numbers if uses[n] == Use.MATCH]
        borne = [n for n in numbers if uses[n] == Use.CONTEXT]
        return (
            tuple(self._search(matched, text)),
            tuple(index for index, _ in self._search(borne, text)),
        )

    def _search(self, numbers: Collection[int], text: str) -> Iterator[tuple[int, dict[str, str]]]:
        """The first of these patterns of each cause that is in the text."""
        done = -1
        for number in numbers:
            pattern = self._patterns[number]
            index = pattern.cause
            if index == done:
                continue
            if pattern.text is not None:
                if pattern.text in text:
                    done = index
                    yield index, {}
                continue
            found = compiled(pattern.pattern).search(text)
            if found is not None:
                done = index
                yield index, {name: value for name, value in found.groupdict().items() if value}

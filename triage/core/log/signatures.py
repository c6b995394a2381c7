"""Tries the patterns of the causes on cleaned lines.

In:  Cause values, and the text of a line.
Out: for each matching cause its index, and what its pattern captured.
Not: deciding whether a match is the reason (cascade.py).

A pattern is tried only on lines that hold one of the literals without which it
cannot match, so the cost of a line hardly depends on the number of causes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple, overload

from triage.core.causes import Cause
from triage.core.log.finder import Literals, literals_of
from triage.core.log.literals import cover, only_text


class Use(IntEnum):
    """What a match of a pattern says about its cause."""

    MATCH = 0  # the line can be the reason
    ABSENT = 1  # the cause holds only if no such line follows
    CONTEXT = 2  # the cause holds only if such a line came before


class Pattern(NamedTuple):
    """One pattern; `text` is set if it is nothing but this text."""

    cause: int
    use: int
    pattern: str
    text: str | None


class Table(NamedTuple):
    """What a set of causes looks for, made once and kept with them.

    `fixed` are literals of the program itself that a scan looks for, too; `owners`
    are, for each number of a literal, those of the patterns that need it; `always`
    the patterns that need none.
    """

    fixed: tuple[str, ...]
    texts: tuple[str, ...]
    triggers: tuple[tuple[int, tuple[int, ...]], ...]
    patterns: tuple[Pattern, ...]
    owners: dict[int, tuple[int, ...]]
    always: tuple[int, ...]

    def literals(self) -> Literals:
        """What a finder must look for."""
        return Literals(tuple(text.encode() for text in self.texts), self.triggers)


def table_of(causes: Sequence[Cause], fixed: Collection[str]) -> Table:
    """The table of these causes."""
    numbers: dict[str, int] = {text: n for n, text in enumerate(sorted(fixed))}
    patterns: list[Pattern] = []
    owners: dict[int, list[int]] = {}
    always: list[int] = []
    for index, cause in enumerate(causes):
        uses = ((Use.MATCH, cause.patterns), (Use.ABSENT, cause.absent),
                (Use.CONTEXT, cause.context))  # fmt: skip
        for use, pattern in ((use, pattern) for use, some in uses for pattern in some):
            needed = cover(pattern)
            if needed is None:
                always.append(len(patterns))
            for literal in sorted(needed or ()):
                number = numbers.setdefault(literal, len(numbers))
                owners.setdefault(number, []).append(len(patterns))
            patterns.append(Pattern(index, int(use), pattern, only_text(pattern)))
    return Table(
        fixed=tuple(sorted(fixed)),
        texts=tuple(numbers),
        triggers=literals_of(tuple(numbers)).triggers,
        patterns=tuple(patterns),
        owners={number: tuple(some) for number, some in owners.items()},
        always=tuple(always),
    )


class Causes(Sequence[Cause]):
    """Causes that are made when they are asked for, with their table.

    Args:
        count: How many there are.
        make: Makes one from its index.
        table: What they look for, made for some fixed literals.
    """

    def __init__(self, count: int, make: Callable[[int], Cause], table: Table) -> None:
        self._made: list[Cause | None] = [None] * count
        self._make = make
        self.table = table

    def __len__(self) -> int:
        return len(self._made)

    @overload
    def __getitem__(self, index: int) -> Cause: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Cause, ...]: ...
    def __getitem__(self, index: int | slice) -> Cause | tuple[Cause, ...]:
        if isinstance(index, slice):
            return tuple(self[n] for n in range(*index.indices(len(self))))
        found = self._made[index]
        if found is None:
            found = self._made[index] = self._make(range(len(self))[index])
        return found


class Matcher:
    """All patterns of a set of causes.

    Args:
        causes: The knowledge base; a match names its index there.
        fixed: Literals that a scan with `literals` must find beside the causes' own.

    Attributes:
        numbers: Literal -> its number, as a finder of `literals` reports it.
        every_line: Whether some pattern has no literal: then every line must be tried.
    """

    def __init__(self, causes: Sequence[Cause], fixed: Collection[str] = ()) -> None:
        self.causes = causes
        made = causes.table if isinstance(causes, Causes) else None
        if made is None or made.fixed != tuple(sorted(fixed)):
            made = table_of(causes, fixed)
        self.table = made
        self.every_line = bool(made.always)
        self._owners: tuple[dict[int, tuple[int, ...]], ...] = ({}, {}, {})
        for number, owners in made.owners.items():
            for use, by_literal in enumerate(self._owners):
                some = tuple(p for p in owners if made.patterns[p].use == use)
                if some:
                    by_literal[number] = some
        self._compiled: dict[str, re.Pattern[str]] = {}

    def numbers(self, texts: Collection[str]) -> frozenset[int]:
        """Numbers of those of the fixed literals that are among these."""
        return frozenset(n for n, text in enumerate(self.table.texts) if text in texts)

    def match(
        self, text: str, seen: Collection[int] | None = None
    ) -> Iterator[tuple[int, dict[str, str]]]:
        """Index of each cause with a pattern in the text, and the pattern's named groups.

        Args:
            text: A cleaned line.
            seen: Numbers of the literals in its raw line; None tries every literal.
        """
        return self._match(Use.MATCH, text, seen)

    def refuted(self, text: str, seen: Collection[int] | None = None) -> Iterator[int]:
        """Index of each cause that holds only if no such line follows."""
        return (index for index, _ in self._match(Use.ABSENT, text, seen))

    def supported(self, text: str, seen: Collection[int] | None = None) -> Iterator[int]:
        """Index of each cause that holds only if such a line came before."""
        return (index for index, _ in self._match(Use.CONTEXT, text, seen))

    def _match(
        self, use: Use, text: str, seen: Collection[int] | None
    ) -> Iterator[tuple[int, dict[str, str]]]:
        owners, patterns, texts = self._owners[use], self.table.patterns, self.table.texts
        tried = {p for p in self.table.always if patterns[p].use == use}
        for number in owners if seen is None else seen:
            if number in owners and texts[number] in text:
                tried.update(owners[number])
        done = -1
        for number in sorted(tried):
            index, _, pattern, only = patterns[number]
            if index == done:
                continue
            if only is not None:
                if only in text:
                    done = index
                    yield index, {}
                continue
            found = (self._compiled.get(pattern) or self._compile(pattern)).search(text)
            if found is not None:
                done = index
                yield index, {name: value for name, value in found.groupdict().items() if value}

    def _compile(self, pattern: str) -> re.Pattern[str]:
        compiled = self._compiled[pattern] = re.compile(pattern)
        return compiled

"""Tries the patterns of the causes on cleaned lines.

In:  Cause values, and the text of a line.
Out: for each matching cause its index, and what its pattern captured.
Not: deciding whether a match is the reason (cascade.py).

A pattern is tried only on lines that hold one of the literals without which it
cannot match, so the cost of a line hardly depends on the number of causes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from triage.core.causes import Cause
from triage.core.log.literals import cover


class Matcher:
    """All patterns of a set of causes.

    Attributes:
        causes: In the order of their index.
        literals: A line without any of them matches nothing.
        every_line: Whether some pattern has no literal: then every line must be tried.
    """

    def __init__(self, causes: Sequence[Cause]) -> None:
        self.causes = tuple(causes)
        self.literals: frozenset[str] = frozenset()
        self.every_line = False
        self._patterns, self._absent, self._context = _Patterns(), _Patterns(), _Patterns()
        for index, cause in enumerate(self.causes):
            for pattern in cause.patterns:
                self._add(self._patterns, index, pattern)
            for pattern in cause.absent:
                self._add(self._absent, index, pattern)
            for pattern in cause.context:
                self._add(self._context, index, pattern)

    def bind(self, triggers: Sequence[bytes]) -> None:
        """Say which triggers a scanner looks for: each literal holds one of them."""
        for patterns in (self._patterns, self._absent, self._context):
            patterns.bind([trigger.decode() for trigger in triggers])

    def match(
        self, text: str, seen: Sequence[int] | None = None
    ) -> Iterator[tuple[int, dict[str, str]]]:
        """Index of each cause with a pattern in the text, and the pattern's named groups.

        Args:
            text: A cleaned line.
            seen: Numbers of the triggers in it; None tries every literal.
        """
        return self._patterns.match(text, seen)

    def refuted(self, text: str, seen: Sequence[int] | None = None) -> Iterator[int]:
        """Index of each cause that holds only if no such line follows."""
        return (index for index, _ in self._absent.match(text, seen))

    def supported(self, text: str, seen: Sequence[int] | None = None) -> Iterator[int]:
        """Index of each cause that holds only if such a line came before."""
        return (index for index, _ in self._context.match(text, seen))

    def _add(self, patterns: _Patterns, index: int, pattern: str) -> None:
        needed = cover(pattern)
        self.every_line |= needed is None
        self.literals |= needed or frozenset()
        patterns.add(index, pattern, needed)


_Owners = list[tuple[int, str]]  # cause index, pattern


class _Patterns:
    """Patterns by literal; each is compiled when its literal is first seen."""

    def __init__(self) -> None:
        self._by_literal: dict[str, _Owners] = {}
        self._by_trigger: dict[int, dict[str, _Owners]] = {}
        self._always: _Owners = []
        self._compiled: dict[str, re.Pattern[str]] = {}

    def add(self, index: int, pattern: str, needed: frozenset[str] | None) -> None:
        if needed is None:
            self._always.append((index, pattern))
        for literal in needed or ():
            self._by_literal.setdefault(literal, []).append((index, pattern))

    def bind(self, triggers: Sequence[str]) -> None:
        self._by_trigger = {}
        for literal, owners in self._by_literal.items():
            for number, trigger in enumerate(triggers):
                if trigger in literal:
                    self._by_trigger.setdefault(number, {})[literal] = owners
                    break

    def match(self, text: str, seen: Sequence[int] | None) -> Iterator[tuple[int, dict[str, str]]]:
        owners = list(self._always)
        groups = [self._by_literal] if seen is None else map(self._by_trigger.get, seen)
        for group in groups:
            for literal, some in group.items() if group else ():
                if literal in text:
                    owners += some
        done = -1
        for index, pattern in sorted(owners) if len(owners) > 1 else owners:
            if index == done:
                continue
            compiled = self._compiled.get(pattern)
            if compiled is None:
                compiled = self._compiled[pattern] = re.compile(pattern)
            found = compiled.search(text)
            if found is not None:
                done = index
                yield index, {name: value for name, value in found.groupdict().items() if value}

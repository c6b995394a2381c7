"""The variables of a script, and what is not known of them because a condition decides.

In:  assignments in their order, and where blocks begin, branch and end.
Out: values for what was surely assigned; `unsure` for what a condition may have assigned.
Not: reading the text (shell.py).

Inside its own branch an assignment holds, since a server that stands there is
started only where the branch is taken. Behind the block it may hold or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from triage.command.source import Word
from triage.errors import UsageError

MAX_NESTED = 200

# list: what follows `&&` or `||`; group: `{ }`, which always runs.
Kind = Literal["if", "loop", "case", "function", "list", "subshell", "group"]
State = tuple[str | None, list[Word] | None, bool, bool]


@dataclass(slots=True)
class _Block:
    kind: Kind
    touched: dict[str, State] = field(default_factory=dict)  # in this branch; state before it
    other: dict[str, State] = field(default_factory=dict)  # in the branches before
    either: bool = False  # a list in which `||` stands


class Variables:
    """Names and values at one place of a script."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self.values: dict[str, str] = dict(values or {})
        self.arrays: dict[str, list[Word]] = {}
        self.open: set[str] = set()  # the value holds something unresolved
        self.unsure: set[str] = set()  # a condition decides what the value is
        self._blocks: list[_Block] = []

    @property
    def kind(self) -> Kind | None:
        """The innermost block."""
        return self._blocks[-1].kind if self._blocks else None

    def assign(self, name: str, value: str | list[Word], *, unresolved: bool = False) -> None:
        """`NAME=value` or `NAME=(...)` is carried out here."""
        self._touch(name)
        if isinstance(value, str):
            self.values[name] = value
        else:
            self.arrays[name] = value
        self.unsure.discard(name)
        self.open.discard(name)
        if unresolved:
            self.open.add(name)

    def forget(self, name: str, *, unsure: bool = False) -> None:
        """The variable is unset here, or set to what cannot be known."""
        self._touch(name)
        self._restore(name, (None, None, False, unsure))

    def enter(self, kind: Kind) -> None:
        """A block begins.

        Raises:
            UsageError: no script is nested so deeply.
        """
        if len(self._blocks) == MAX_NESTED:
            raise UsageError(f"the script is nested deeper than {MAX_NESTED} blocks")
        self._blocks.append(_Block(kind))

    def branch(self) -> None:
        """Another branch of the block begins: `else`, `elif`, `;;`."""
        self.end_list()
        if self.kind in ("if", "case"):
            block = self._blocks[-1]
            for name, state in block.touched.items():
                self._restore(name, state)
            self._put_aside(block)

    def leave(self, *kinds: Kind) -> None:
        """The innermost block ends, if it is one of these."""
        self.end_list()
        if self.kind in kinds:
            self._leave()

    def link(self, *, either: bool) -> None:
        """`&&`, or with `either` `||`: what follows may not be carried out."""
        if self.kind != "list":
            self.enter("list")
        block = self._blocks[-1]
        block.either |= either
        if block.either:
            for name in block.touched:
                self._restore(name, (None, None, False, True))
            self._put_aside(block)

    def end_list(self) -> None:
        """What `&&` and `||` joined ends here."""
        if self.kind == "list":
            self._leave()

    def _put_aside(self, block: _Block) -> None:
        for name, state in block.touched.items():
            block.other.setdefault(name, state)
        block.touched.clear()

    def _leave(self) -> None:
        block = self._blocks.pop()
        for name, state in (block.touched | block.other).items():
            if block.kind == "subshell":
                self._restore(name, state)
                continue
            if self._blocks:
                self._blocks[-1].touched.setdefault(name, state)
            if block.kind != "group":
                self._restore(name, (None, None, False, True))

    def _touch(self, name: str) -> None:
        if self._blocks and name not in self._blocks[-1].touched:
            known = self.values.get(name), self.arrays.get(name)
            self._blocks[-1].touched[name] = (*known, name in self.open, name in self.unsure)

    def _restore(self, name: str, state: State) -> None:
        value, array, is_open, unsure = state
        self.values.pop(name, None)
        self.arrays.pop(name, None)
        if value is not None:
            self.values[name] = value
        if array is not None:
            self.arrays[name] = array
        for names, member in ((self.open, is_open), (self.unsure, unsure)):
            (names.add if member else names.discard)(name)

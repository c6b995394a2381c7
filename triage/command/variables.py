"""The variables of a script, and what is not known of them, such as what a condition decides.

In:  assignments in their order, and where commands and blocks begin, branch and end.
Out: values for what was surely assigned; `unsure` for what may have been.
Not: reading the text (shell.py).

Inside its own branch an assignment holds, since a server that stands there is
started only where the branch is taken. Behind the block it may hold or not.
Only the operator behind a command tells whether it ran in a subshell, so that
every command is read as a block of its own (`begin`), which then ends one way
or the other.

Source: POSIX.1-2017, Shell Command Language, 2.9.1 and 2.12; bash(1), "Pipelines".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from triage.command.source import Word
from triage.errors import UsageError

MAX_NESTED = 200

# list: what follows `&&` or `||`; group: `{ }`, which always runs; job: what `;` or `&`
# ends; part: one command of a pipeline; prefix: the assignments before a command.
Kind = Literal[
    "if", "loop", "case", "function", "list", "subshell", "group", "job", "part", "prefix"
]
UNNESTED = ("list", "job", "part", "prefix")  # of these none stands directly in its like
CERTAIN = ("group", "job", "part", "prefix")  # what stands in these is carried out
ARITHMETIC = re.compile(
    r"(?:\+\+|--)\s*(?P<before>[A-Za-z_]\w*)"
    r"|(?P<name>[A-Za-z_]\w*)(?:\[[^\]]*\])?\s*"
    r"(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))",
    re.ASCII,
)
State = tuple[str | None, list[Word] | None, bool, bool]


@dataclass(slots=True)
class _Block:
    kind: Kind
    touched: dict[str, State] = field(default_factory=dict)  # in this branch; state before it
    other: dict[str, State] = field(default_factory=dict)  # in the branches before
    either: bool = False  # a list in which `||` stands
    apart: bool = False  # carried out where it changes nothing for what follows


class Variables:
    """Names and values at one place of a script."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self.values: dict[str, str] = dict(values or {})
        self.arrays: dict[str, list[Word]] = {}
        self.open: set[str] = set()  # the value holds something unresolved
        self.unsure: set[str] = set()  # may have been set, to what is not known
        self.why: dict[str, str] = {}  # unless a condition is the reason
        self._blocks: list[_Block] = []

    @property
    def kind(self) -> Kind | None:
        """The innermost block."""
        return self._blocks[-1].kind if self._blocks else None

    @property
    def certain(self) -> bool:
        """Whether what stands here is carried out, and holds for what follows."""
        return all(block.kind in CERTAIN and not block.apart for block in self._blocks)

    def assign(self, name: str, value: str | list[Word], *, unresolved: bool = False) -> None:
        """`NAME=value` or `NAME=(...)` is carried out here."""
        self._touch(name)
        if isinstance(value, str):
            self.values[name] = value
        else:
            self.arrays[name] = value
        self.unsure.discard(name)
        self.why.pop(name, None)
        self.open.discard(name)
        if unresolved:
            self.open.add(name)

    def forget(self, name: str, *, unsure: bool = False, why: str = "") -> None:
        """The variable is unset here, or set to what cannot be known, by `why`."""
        self._touch(name)
        self._restore(name, (None, None, False, unsure))
        if why:
            self.why[name] = why

    def enter(self, kind: Kind) -> None:
        """A block begins.

        Raises:
            UsageError: no script is nested so deeply.
        """
        if sum(block.kind not in UNNESTED for block in self._blocks) == MAX_NESTED:
            raise UsageError(
                f"the script is nested deeper than {MAX_NESTED} blocks", hint="sh -n FILE"
            )
        self._blocks.append(_Block(kind))

    def begin(self) -> None:
        """A command begins, if none has begun here."""
        if self.kind not in UNNESTED:
            self.enter("job")
        if self.kind in ("job", "list"):
            self.enter("part")

    def prefix(self) -> None:
        """An assignment follows that may stand before a command."""
        if self.kind != "prefix":
            self.enter("prefix")

    def end_prefix(self, *, stays: bool) -> bool:
        """The assignments end; they stay if no command follows. False if there were none."""
        if self.kind != "prefix":
            return False
        self._leave(apart=not stays)
        return True

    def pipe(self) -> None:
        """`|`: the commands before and behind it run in subshells."""
        if self.kind == "part":
            self._leave(apart=True)
        self.begin()
        self._blocks[-1].apart = True

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
        if self.kind == "part":
            self._leave()
        if self.kind != "list":
            self.enter("list")
        block = self._blocks[-1]
        block.either |= either
        if block.either:
            for name in block.touched:
                self._restore(name, (None, None, False, True))
            self._put_aside(block)

    def end_list(self, *, behind: bool = False) -> None:
        """What `|`, `&&` and `||` joined ends here, with `behind` by `&`."""
        if self.kind == "part":
            self._leave()
        if self.kind == "list":
            self._leave()
        if self.kind == "job":
            self._leave(apart=behind)

    def _put_aside(self, block: _Block) -> None:
        for name, state in block.touched.items():
            block.other.setdefault(name, state)
        block.touched.clear()

    def _leave(self, *, apart: bool = False) -> None:
        block = self._blocks.pop()
        apart |= block.apart or block.kind == "subshell"
        for name, state in (block.touched | block.other).items():
            if apart:
                self._restore(name, state)
                continue
            if self._blocks:
                self._blocks[-1].touched.setdefault(name, state)
            if block.kind not in CERTAIN:
                self._restore(name, (None, None, False, True))

    def _touch(self, name: str) -> None:
        if self._blocks and name not in self._blocks[-1].touched:
            known = self.values.get(name), self.arrays.get(name)
            self._blocks[-1].touched[name] = (*known, name in self.open, name in self.unsure)

    def _restore(self, name: str, state: State) -> None:
        value, array, is_open, unsure = state
        self.why.pop(name, None)
        self.values.pop(name, None)
        self.arrays.pop(name, None)
        if value is not None:
            self.values[name] = value
        if array is not None:
            self.arrays[name] = array
        for names, member in ((self.open, is_open), (self.unsure, unsure)):
            (names.add if member else names.discard)(name)


def assigned_in(expression: str) -> Iterator[str]:
    """The names that an arithmetic expression assigns: `A = 1`, `A += 1`, `A++`."""
    for match in ARITHMETIC.finditer(expression):
        yield match["before"] or match["name"]

"""A document without markup: titled sections of paragraphs, lists, tables, code and pictures.

In:  nothing. Out: Runbook and its parts. All text is plain, and none of it is trusted:
lines of logs are in it, so a renderer escapes everything.
Not: what a runbook says (runbook.py) or how it looks (triage.render).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from triage.core.advice.values import Advice


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences that belong together."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list without order."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A heading row and the rows under it, all of one length."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values, to be taken in at a glance."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Text to be shown as it is, and pasted. `language` may be "".

    In the language `log` a line that begins with `>` is the one that counts.
    """

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A phase of one rank; seconds since the log's first dated line, `start` <= `end`."""

    phase: str
    rank: str
    start: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChart:
    """When each rank was in which phase, and where the launch ended.

    `ended` is "failed", "hung" or "ready"; `at` is where: phase, rank and second.
    """

    spans: tuple[Span, ...]
    ended: str
    at: tuple[str, str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One trial of a TrialChart; `on` are the rows that it had. `verdict` as in OUTCOMES."""

    number: int
    on: frozenset[str]
    verdict: str
    seconds: float
    assumed: bool = False
    launched: bool = True  # in full; else a cheaper trial answered


# The last one: the engine accepts it before it starts a process, and it was not launched.
OUTCOMES = ("starts", "same failure", "other failure", "unresolved", "passes checks")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialChart:
    """Which trial had which items, what came of it, and how long it took."""

    rows: tuple[str, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture. `alt` says in words what it shows, `table` has the same as text."""

    caption: str
    alt: str
    chart: PhaseChart | TrialChart | Advice
    table: Table
    table_shown: bool = False  # beside the picture; else a reader asks for it


@dataclass(frozen=True, slots=True)
class Ref:
    """Where a statement can be checked: a file, and in it a line (from 1; 0: the whole file)."""

    file: str
    line: int = 0
    say: str = ""


Block = Paragraph | Bullets | Table | Facts | Code | Figure | Ref


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Runbook:
    """The document handed over. `summary` are its first sentences, `facts` the answer in brief."""

    title: str
    sections: tuple[Section, ...]
    summary: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    simulated: bool = False


Part = TypeVar("Part")


def with_text(part: Part, change: Callable[[str], str]) -> Part:
    """The document, or a part of it, with every text in it changed; numbers stay."""
    return cast("Part", _changed(part, change))


def _changed(part: Any, change: Callable[[str], str]) -> Any:
    if isinstance(part, str):
        return change(part)
    if isinstance(part, tuple):
        return tuple(_changed(one, change) for one in part)
    if isinstance(part, frozenset):
        return frozenset(_changed(one, change) for one in part)
    if is_dataclass(part) and not isinstance(part, type):
        values = {f.name: _changed(getattr(part, f.name), change) for f in fields(part)}
        return replace(part, **values)
    return part

"""A document without markup: titled sections of paragraphs, lists, tables and code.

In:  nothing. Out: Runbook and its parts. All text is plain, and none of it is trusted:
lines of logs are in it, so a renderer escapes everything.
Not: what a runbook says (runbook.py) or how it looks (triage.render).
"""

from __future__ import annotations

from dataclasses import dataclass


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
class Code:
    """Text to be shown as it is, and pasted. `language` may be ""."""

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Ref:
    """Where a statement can be checked: a file, and in it a line (from 1; 0: the whole file)."""

    file: str
    line: int = 0
    say: str = ""


Block = Paragraph | Bullets | Table | Code | Ref


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Runbook:
    """The document handed over at the end of an investigation."""

    title: str
    sections: tuple[Section, ...]

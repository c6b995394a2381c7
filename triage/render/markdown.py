"""A runbook as Markdown (GitHub's dialect), whatever the text in it holds.

In:  a Runbook; its text is not trusted, for lines of logs are in it.
Out: one string, ended by a newline; the same input gives the same bytes.
Not: what the document says (core.handover.runbook) or writing it to a file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import assert_never

from triage.core.handover.document import (
    Block,
    Bullets,
    Code,
    Facts,
    Figure,
    Paragraph,
    Ref,
    Runbook,
    Table,
)
from triage.core.printable import visible
from triage.core.regex import regex

__all__ = ["inline", "markdown", "visible"]

# Characters that may open markup anywhere in a line. An underscore inside a word
# does not, and names are full of them.
_MARKUP = regex(r"([\\`*\[\]<>|~&$!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
# What opens a block at the start of a line: heading, list, rule, setext underline, quote, number.
_LINE_START = regex(r"^([#+=-]|\d+(?=[.)](?:\s|$)))")
FENCE = 3  # backticks that a code block begins with, at least


def markdown(runbook: Runbook, *, links: Mapping[str, str] | None = None) -> str:
    """The document as Markdown; table cells that are a key of `links` lead to its file."""
    to = links or {}
    parts = [f"# {inline(runbook.title)}"]
    parts += [inline(sentence) for sentence in runbook.summary]
    if runbook.facts:
        parts.append(_block(Facts(runbook.facts), to))
    for section in runbook.sections:
        parts.append(f"## {inline(section.title)}")
        parts += [_block(block, to) for block in section.blocks]
    return "\n\n".join(parts) + "\n"


def _block(block: Block, links: Mapping[str, str]) -> str:
    match block:
        case Paragraph(text):
            return inline(text)
        case Bullets(items):
            return "\n".join(f"- {inline(item)}" for item in items)
        case Table(head, rows):
            return _table(head, rows, links)
        case Facts(rows):
            return "\n".join(f"- **{inline(name)}**: {inline(value)}" for name, value in rows)
        case Figure(caption=caption, table=Table(head, rows)):
            return f"{inline(caption)}\n\n{_table(head, rows, links)}"
        case Code(text, language):
            return _code(text, language)
        case Ref(file, line, say):
            place = f"{file}, line {line}" if line else file
            return inline(f"See {place}{f': {say}' if say else ''}.")
    assert_never(block)


def inline(text: str) -> str:
    """Text on one line that Markdown shows as it is: every mark escaped, controls made visible."""
    line = " ".join(visible(text).split())
    return _LINE_START.sub(_escape_start, _MARKUP.sub(r"\\\1", line))


def _escape_start(match: re.Match[str]) -> str:
    mark = match[1]
    return f"{mark}\\" if mark.isdigit() else f"\\{mark}"


def _table(
    head: tuple[str, ...], rows: tuple[tuple[str, ...], ...], links: Mapping[str, str]
) -> str:
    lines = [_row(head, {}), "|" + " --- |" * len(head), *(_row(row, links) for row in rows)]
    return "\n".join(lines)


def _row(cells: tuple[str, ...], links: Mapping[str, str]) -> str:
    shown = (f"[{inline(c)}]({links[c]})" if c in links else inline(c) for c in cells)
    return "| " + " | ".join(shown) + " |"


def _code(text: str, language: str) -> str:
    """A fenced block; its fence is longer than any run of backticks in the text."""
    shown = visible(text)
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * max(FENCE, longest + 1)
    word = re.sub(r"[^A-Za-z0-9+-]", "", language)
    return f"{fence}{word}\n{shown}\n{fence}"

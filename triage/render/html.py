"""A document as one self-contained HTML page, whatever the text in it holds.

In:  a Runbook; its text is not trusted, for lines of logs are in it.
Out: one string: no script, nothing from a network, works from `file://`; the same input
gives the same bytes.
Not: what the document says (triage.core.handover) or drawing (charts.py).

The page's policy allows one thing: the style sheet in it, by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from triage.core.advice.values import Advice
from triage.core.handover.document import Block, Figure, PhaseChart, Runbook, TrialChart
from triage.core.printable import visible
from triage.render.charts import INSTALL, can_draw, draw

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

TEMPLATES = Path(__file__).with_name("templates")
MARK = " (simulated)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A page of a set: where it lies, what it is called."""

    href: str
    text: str
    current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A section's heading as the page shows it; `anchor` is unique in the page."""

    anchor: str
    text: str
    simulated: bool


def page(
    runbook: Runbook,
    *,
    footer: str = "",
    up: Link | None = None,
    drawn: Callable[[PhaseChart | TrialChart | Advice], str] = draw,
    links: Mapping[str, str] | None = None,
) -> str:
    """The document as HTML.

    Args:
        runbook: What stands in it.
        footer: A line at its end.
        up: The page that this one belongs to.
        drawn: Draws a chart as SVG; "" leaves it out, and its table is shown instead.
        links: Texts of table cells and list items that lead to other pages of the set.
    """
    style = _style()
    sections = [
        (heading, section.blocks)
        for heading, section in zip(_headings(runbook), runbook.sections, strict=True)
    ]
    has_figure = any(isinstance(b, Figure) for s in runbook.sections for b in s.blocks)
    return _template().render(
        title=_plain(runbook.title),
        book=runbook,
        style=style,
        digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        sections=sections,
        footer=footer,
        up=up,
        draw=drawn,
        links=links or {},
        missing=INSTALL if has_figure and not can_draw() else "",
    )


def _headings(runbook: Runbook) -> list[Heading]:
    found: list[Heading] = []
    for section in runbook.sections:
        text = _plain(section.title)
        base = anchor = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "section"
        while anchor in {heading.anchor for heading in found}:
            anchor = f"{base}-{len(found)}"
        found.append(Heading(anchor=anchor, text=text, simulated=section.title.endswith(MARK)))
    return found


def _plain(title: str) -> str:
    return visible(title.removesuffix(MARK))


def _style() -> str:
    return (TEMPLATES / "page.css").read_text(encoding="utf-8")


# The only addresses that become links: a log may print others, and nobody should go there.
_REFERENCE = re.compile(
    r"https://github\.com/([A-Za-z0-9-]+/[A-Za-z0-9._-]+)/(?:issues|pull)/(\d{1,7})(?![\w/])"
)


def _references(text: str) -> Markup:
    """The text, escaped, with each address of a public issue as a short link."""
    from markupsafe import Markup, escape

    shown, start = Markup(""), 0
    for found in _REFERENCE.finditer(text):
        link = Markup('<a href="{}" rel="noreferrer">{}#{}</a>')
        shown += escape(text[start : found.start()]) + link.format(found[0], found[1], found[2])
        start = found.end()
    return shown + escape(text[start:])


def _kind(block: Block) -> str:
    return type(block).__name__


def _diff_lines(text: str) -> list[tuple[str, str]]:
    """Each line of a diff with its class: added, removed, place or nothing."""
    classes = {"+": "added", "-": "removed", "@": "place"}
    return [
        (line, "" if line.startswith(("+++", "---")) else classes.get(line[:1], ""))
        for line in visible(text).split("\n")
    ]


def _log_lines(text: str) -> list[tuple[str, str]]:
    return [(line, "counts" if line.startswith(">") else "") for line in visible(text).split("\n")]


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        kind=_kind,
        visible=visible,
        references=_references,
        diff_lines=_diff_lines,
        log_lines=_log_lines,
    )
    return environment.get_template("page.html")

"""General runbooks from the knowledge base, as files.

In:  the id of a cause, or a folder. Out: Pages; a set of files that lead to each other.
Not: what stands in them (triage.core.handover.general).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from triage.core.causes import Cause
from triage.core.handover.general import cause_runbook, index_of
from triage.errors import HostError, hint
from triage.knowledge.seen import seen_phases
from triage.render.html import Link, page
from triage.render.markdown import markdown
from triage.session.knowledge import causes, one_cause
from triage.session.runbook import Pages


def cause_pages(name: str) -> Pages:
    """The general runbook of a cause; UsageError if there is none of that name."""
    known = tuple(causes())
    cause = one_cause(name, known)
    book = cause_runbook(cause, known, seen_phases())
    return Pages(markdown=markdown(book), html=page(book, footer=_footer()))


def write_handbook(folder: Path, *, html: bool = True) -> tuple[Path, ...]:
    """Write a page for every cause and an index, as Markdown and as HTML; the files written.

    Files of other names are left alone.
    """
    known = tuple(sorted(causes(), key=lambda c: c.id))
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in handbook(known, html=html):
            file = folder / name
            file.write_text(text, encoding="utf-8", errors="replace")
            written.append(file)
    except OSError as error:
        raise HostError(
            f"cannot write {folder}: {error.strerror}", hint=hint("ls", "-ld", folder)
        ) from error
    return tuple(written)


def handbook(known: Sequence[Cause], *, html: bool = True) -> tuple[tuple[str, str], ...]:
    """File name -> text: README.md and, with `html`, index.html lead to one page a cause."""
    seen = seen_phases()
    index = index_of(known, seen)
    files = [("README.md", markdown(index, links={c.id: f"{c.id}.md" for c in known}))]
    if html:
        links = {c.id: f"{c.id}.html" for c in known}
        files.append(("index.html", page(index, footer=_footer(), links=links)))
    for cause in known:
        book = cause_runbook(cause, known, seen)
        others = [c.id for c in known if c.id != cause.id]
        files.append((f"{cause.id}.md", markdown(book, links={n: f"{n}.md" for n in others})))
        if html:
            up = Link(href="index.html", text="All runbooks")
            links = {name: f"{name}.html" for name in others}
            text = page(book, footer=_footer(), up=up, links=links)
            files.append((f"{cause.id}.html", text))
    return tuple(files)


def _footer() -> str:
    return f"Written by triage {version('sglang-triage')} from its knowledge base."

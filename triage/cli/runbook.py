"""`triage runbook`: the document to hand over."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from triage.cli import console
from triage.cli.explain import complete_cause

if TYPE_CHECKING:
    from triage.session.runbook import Pages


@click.command(name="runbook")
@click.argument("session", required=False, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Write it here instead of into the session: a page if the name ends in .html, "
    'else Markdown; "-" prints Markdown.',
)
@click.option(
    "--share",
    is_flag=True,
    help="Take out the names of machines, people and addresses, too.",
)
@click.option(
    "--cause",
    metavar="ID",
    shell_complete=complete_cause,
    help="Write the general runbook of a cause instead; printed without --output.",
)
@click.option(
    "--all",
    "folder_of_all",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the general runbook of every cause into DIR, with an index by phase.",
)
def command(
    session: Path | None,
    *,
    output: Path | None,
    share: bool,
    cause: str | None,
    folder_of_all: Path | None,
) -> int:
    """Write the runbook of SESSION and print where it lies.

    It is written as Markdown and as one HTML page that needs nothing else. Without
    SESSION the newest one is taken. Secrets are always taken out.
    """
    if sum(one is not None for one in (session, cause, folder_of_all)) > 1:
        raise click.UsageError("SESSION, --cause and --all exclude each other")
    if folder_of_all is not None:
        if output is not None:
            raise click.UsageError("--all names the folder; --output is for one document")
        return _all(folder_of_all)
    if cause is not None:
        return _general(cause, output)
    from triage.session.runbook import write_runbook
    from triage.store import newest_session

    folder, pages = write_runbook(session or newest_session(), share=share)
    if output is None:
        console.answer(str(folder.write("runbook.md", pages.markdown)))
        console.answer(str(folder.write("runbook.html", pages.html)))
    else:
        _put(pages, output)
    say_missing()
    return 0


def _put(pages: Pages, output: Path) -> None:
    """One document where the user wants it; its name tells the form."""
    if str(output) == "-":
        console.page(pages.markdown)
        return
    write(output, pages.html if output.suffix in (".html", ".htm") else pages.markdown)
    console.answer(str(output))


def _general(cause: str, output: Path | None) -> int:
    from triage.session.handbook import cause_pages

    _put(cause_pages(cause), output or Path("-"))
    return 0


def _all(folder: Path) -> int:
    from triage.session.handbook import write_handbook

    files = write_handbook(folder)
    console.talk(f"{len(files)} files")
    for file in files:
        if file.name in ("README.md", "index.html"):
            console.answer(str(file))
    return 0


def write(file: Path, text: str) -> None:
    """Write a document where the user asked for it; HostError says why it cannot be."""
    from triage.errors import HostError, hint

    try:
        file.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise HostError(
            f"cannot write {file}: {error.strerror}", hint=hint("ls", "-ld", file.parent)
        ) from error


def say_missing() -> None:
    """One line on what would add the pictures, if that is not installed."""
    from triage.render.charts import INSTALL, can_draw

    if not can_draw():
        console.talk(f"note: the page has no pictures; to have them: {INSTALL}")

"""`triage runbook`: the document to hand over."""

from __future__ import annotations

from pathlib import Path

import click

from triage.cli import console


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
def command(session: Path | None, *, output: Path | None, share: bool) -> int:
    """Write the runbook of SESSION and print where it lies.

    It is written as Markdown and as one HTML page that needs nothing else. Without
    SESSION the newest one is taken. Secrets are always taken out.
    """
    from triage.session.runbook import write_runbook
    from triage.store import newest_session

    folder, pages = write_runbook(session or newest_session(), share=share)
    if output is None:
        console.answer(str(folder.write("runbook.md", pages.markdown)))
        console.answer(str(folder.write("runbook.html", pages.html)))
    elif str(output) == "-":
        console.page(pages.markdown)
    else:
        text = pages.html if output.suffix in (".html", ".htm") else pages.markdown
        write(output, text)
        console.answer(str(output))
    say_missing()
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

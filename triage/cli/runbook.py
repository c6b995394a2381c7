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
    help='Write it here instead of into the session; "-" prints it.',
)
def command(session: Path | None, *, output: Path | None) -> int:
    """Write the runbook of SESSION, in Markdown, and print where it lies.

    Without SESSION the newest one is taken.
    """
    from triage.errors import HostError, hint
    from triage.session.runbook import write_runbook
    from triage.store import newest_session

    folder, text = write_runbook(session or newest_session())
    if output is None:
        console.answer(str(folder.write("runbook.md", text)))
    elif str(output) == "-":
        console.page(text)
    else:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise HostError(
                f"cannot write {output}: {error.strerror}", hint=hint("ls", "-ld", output.parent)
            ) from error
        console.answer(str(output))
    return 0

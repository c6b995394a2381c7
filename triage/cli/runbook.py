"""`triage runbook`: the document to hand over."""

from __future__ import annotations

from pathlib import Path

import click

from triage.cli import console


@click.command(name="runbook")
@click.argument("session", required=False, type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write it here as well.")
def command(session: Path | None, *, output: Path | None) -> int:
    """Write the runbook of SESSION, in Markdown, and print where it lies.

    Without SESSION the newest one is taken.
    """
    from triage.session.handover import write_runbook
    from triage.store import newest_session

    console.answer(str(write_runbook(session or newest_session(), output)))
    return 0

"""`triage confirm`: launch the proposal and prove it."""

from __future__ import annotations

from pathlib import Path

import click

from triage.cli import console
from triage.errors import UsageError, hint


@click.command(name="confirm")
@click.argument("session", required=False, type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Show the command, launch nothing.")
@console.output_options
def command(
    session: Path | None, *, dry_run: bool, as_json: bool, color: str, exit_zero: bool
) -> int:
    """Launch the recommended configuration of SESSION and prove it.

    It is confirmed if its own listener answers each prompt twice alike at
    temperature 0. Without SESSION the newest one is taken.
    """
    from triage.render.search_documents import confirmation_document
    from triage.render.session_text import confirmation_text
    from triage.session.handover import confirm, proposed_command
    from triage.store import SessionFolder, newest_session

    path = session or newest_session()
    if dry_run and as_json:
        raise UsageError("a dry run is shown as text only", hint="triage confirm --dry-run")
    if dry_run:
        console.answer(proposed_command(path))
        return 0
    mark = " (simulated)" if SessionFolder.open(path).facts["simulated"] else ""
    console.talk(f"session: {path}{mark}")
    folder, shown = confirm(path, console.talk)
    if as_json:
        console.document(confirmation_document(shown))
    else:
        style = "good" if shown.confirmed else "error"
        console.answer(confirmation_text(shown), style, on=console.coloured(color))
    if shown.confirmed:
        console.talk(f"next: {hint('triage', 'runbook', folder.path)}")
    else:
        log = folder.path / shown.folder / "server.log"
        console.talk(f"  try: {hint('triage', 'classify', log)}")
    return console.code(0 if shown.confirmed else 12, exit_zero=exit_zero)

"""`triage confirm`: launch the proposal and prove it."""

from __future__ import annotations

from pathlib import Path

import click

from triage.cli import console


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
    from triage.store import newest_session

    path = session or newest_session()
    if dry_run:
        console.answer(proposed_command(path))
        return 0
    console.talk(f"session: {path}")
    folder, shown = confirm(path, console.talk)
    if as_json:
        console.document(confirmation_document(shown))
    else:
        first, _, rest = confirmation_text(shown).partition("\n")
        painted = console.paint(
            first, "good" if shown.confirmed else "error", on=console.coloured(color)
        )
        console.answer(painted + ("\n" + rest if rest else ""))
    if shown.confirmed:
        console.talk(f"next: triage runbook {folder.path}")
    else:
        console.talk(f"  try: triage classify {folder.path / shown.folder}/server.log")
    return console.code(0 if shown.confirmed else 12, exit_zero=exit_zero)

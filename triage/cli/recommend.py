"""`triage recommend`: the proposal of a session."""

from __future__ import annotations

from pathlib import Path

import click

from triage.cli import console
from triage.errors import hint


@click.command(name="recommend")
@click.argument("session", required=False, type=click.Path(path_type=Path))
@console.output_options
def command(session: Path | None, *, as_json: bool, color: str, exit_zero: bool) -> int:
    """Show the working configuration that changes least, from SESSION.

    Without SESSION the newest one is taken.
    """
    from triage.render.search_documents import recommendation_document
    from triage.render.session_text import recommendation_text
    from triage.session.handover import recommendation
    from triage.store import newest_session

    folder, problem, found = recommendation(session or newest_session())
    if as_json:
        console.document(recommendation_document(found))
    else:
        style = "good" if found.config is not None else "error"
        text = recommendation_text(found, problem)
        console.answer(text, style, on=console.coloured(color))
    if found.config is not None:
        console.talk(f"next: {hint('triage', 'confirm', folder.path)}")
    return console.code(0 if found.config is not None else 12, exit_zero=exit_zero)

"""`triage inspect CMDFILE`: what cannot work with the engine and the model that are installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from triage.cli import console

if TYPE_CHECKING:
    from triage.core.config import ServerCommand

FOUND = 14
_FILE = click.Path(path_type=Path)


@click.command(name="inspect", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="CMDFILE | -- CMD...")
@click.option("--python", type=_FILE, help="The Python that has the engine.")
@click.option("--model", type=_FILE, help="The model's folder, if it lies elsewhere here.")
@console.output_options
def command(
    words: tuple[str, ...],
    *,
    python: Path | None,
    model: Path | None,
    as_json: bool,
    color: str,
    exit_zero: bool,
) -> int:
    """Find what cannot work with the installed engine, without running it.

    The engine's source is parsed and its packages' metadata read, nothing is
    imported: MoE runners that are not registered for the all-to-all backend
    or the quantisation, unknown speculative algorithms, plugins that cannot be
    loaded, packages that differ, sizes of the model's config.json that the
    parallel layout does not divide. Each finding says where that stands.

    Exits 14 if something was found. That nothing was is no proof.
    """
    from triage.errors import NothingError, hint
    from triage.render.inspection_text import inspection_document, inspection_text
    from triage.session.inspecting import inspect_command

    given = _read(words)
    for note in given.notes:
        console.talk(f"note: {note}")
    found = inspect_command(given, python=python, model=model)
    if found.installed.why and found.model.why:
        raise NothingError(
            f"there is nothing to inspect: {found.installed.why}, and {found.model.why}",
            hint=hint("triage", "inspect", "--python", "/path/to/python", "CMDFILE"),
        )
    if as_json:
        console.document(inspection_document(found))
    else:
        style = "error" if found.findings else "good"
        console.answer(inspection_text(found), style, on=console.coloured(color))
    return console.code(FOUND if found.findings else 0, exit_zero=exit_zero)


def _read(words: tuple[str, ...]) -> ServerCommand:
    """The command that was typed, or that the one named file holds."""
    from triage.command import read_argv, read_command_file
    from triage.errors import UsageError
    from triage.session.logs import flag_table

    if not words:
        raise UsageError("no command was given", hint="triage inspect --help")
    if len(words) == 1:
        return read_command_file(Path(words[0]), flag_table())
    return read_argv(words, flag_table())

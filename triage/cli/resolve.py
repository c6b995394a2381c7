"""`triage resolve`: what the engine makes of a command, without launching it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from triage.cli import console

if TYPE_CHECKING:
    from triage.core.config import ServerCommand

_FILE = click.Path(path_type=Path)


@click.command(name="resolve", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="CMDFILE | -- CMD...")
@click.option("--python", type=_FILE, help="The Python that has the engine.")
@click.option("--timeout", default="60s", show_default=True, help="Time for the engine's answer.")
@console.output_options
def command(
    words: tuple[str, ...],
    *,
    python: Path | None,
    timeout: str,
    as_json: bool,
    color: str,
    exit_zero: bool,
) -> int:
    """Ask the engine what it makes of a command, without launching it.

    The engine is imported in its own Python (seconds), and goes its own way up
    to the first process that it would start: every check of flags and
    configuration is its own. What it accepts may still fail later.

    CMDFILE is what triage config reads; with -- the command is typed here.
    """
    from triage.core.units import parse_duration
    from triage.errors import Inconclusive, UsageError, hint
    from triage.render.resolution_text import resolution_document, resolution_text
    from triage.session.logs import exit_code
    from triage.session.resolving import resolve_command

    try:
        limit = parse_duration(timeout)
    except ValueError as error:
        raise UsageError(str(error), hint="triage resolve --timeout 60s CMDFILE") from error
    given = _read(words)
    found = resolve_command(given, python=str(python) if python else None, each_s=limit)
    for note in found.notes:
        console.talk(f"note: {note}")
    resolution = found.resolution
    if as_json:
        console.document(
            resolution_document(
                resolution,
                found.config,
                diagnosis=found.diagnosis,
                overridden=found.overrides,
                import_s=found.import_s,
            )
        )
    elif resolution.verdict != "unknown":
        style = "good" if resolution.verdict == "accepted" else "error"
        text = resolution_text(
            resolution, diagnosis=found.diagnosis, overridden=found.overrides, moved=found.moved
        )
        console.answer(text, style, on=console.coloured(color))
    if resolution.verdict == "unknown":
        raise Inconclusive(
            f"nothing is known without a launch: {resolution.reason}",
            hint=hint("triage", "resolve", "--python", "/path/to/python", "CMDFILE")
            if not found.asked
            else hint("triage", "run", "--", *given.program),
        )
    if resolution.verdict == "accepted":
        return 0
    code = exit_code(found.diagnosis) if found.diagnosis else 10
    return console.code(code, exit_zero=exit_zero)


def _read(words: tuple[str, ...]) -> ServerCommand:
    """The command that was typed, or that the one named file holds."""
    from triage.command import read_argv, read_command_file
    from triage.errors import UsageError
    from triage.session.logs import flag_table

    if not words:
        raise UsageError("no command was given", hint="triage resolve --help")
    if len(words) == 1:
        return read_command_file(Path(words[0]), flag_table())
    return read_argv(words, flag_table())

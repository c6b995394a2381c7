"""`triage config CMDFILE`: what a server command sets, in canonical names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from triage.cli import console


@click.command(name="config")
@click.argument("file", metavar="CMDFILE", type=click.Path(path_type=Path, allow_dash=True))
@console.output_options
def command(file: Path, *, as_json: bool, color: str, exit_zero: bool) -> int:
    """Read a server command and print what it sets, in canonical names.

    CMDFILE is a script, a one-line command, a `docker run` line, a systemd
    unit, an sbatch script, a Kubernetes manifest, an SGLang --config YAML, or a
    log with a `server_args=` line; with - it is read from standard input.
    """
    from triage.command import read_command_file
    from triage.core.config import Flag, words
    from triage.core.hide import hide_config
    from triage.render.documents import config_document
    from triage.session.logs import flag_table

    found = read_command_file(file, flag_table())
    found = replace(found, config=hide_config(found.config))
    if as_json:
        document = {
            "schema": "triage.config/1",
            "form": found.form,
            "program": list(found.program),
            "wrapper": list(found.wrapper),
            **config_document(found.config),
            "notes": list(found.notes),
        }
        console.document(document)
        return 0
    on = console.coloured(color)
    console.answer(f"{found.form}: {' '.join(found.program)}", "strong", on=on)
    for name, value in found.config.env:
        console.answer(f"  {name}={value}")
    for flag in found.config.flags:
        console.answer("  " + " ".join(words(Flag(flag.name, flag.value))))
    for note in found.notes:
        console.talk(f"note: {note}")
    return console.code(0, exit_zero=exit_zero)

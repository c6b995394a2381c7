"""`triage flags`: the flag tables, one a version of the engine."""

from __future__ import annotations

from pathlib import Path

import click

from triage.cli import console


@click.group(name="flags")
def command() -> None:
    """Flag tables of the engine: what it accepts, version by version."""


@command.command(name="generate")
@click.option(
    "--python",
    required=True,
    type=click.Path(path_type=Path),
    help="The Python that has the SGLang to read.",
)
@click.option(
    "--output", type=click.Path(path_type=Path), help="Write the table here, not to stdout."
)
def generate(*, python: Path, output: Path | None) -> int:
    """Write the flag table of an installed SGLang.

    Names, aliases, negative forms, types, choices, defaults, and for deprecated
    flags their successors, as its own parser has them. Nothing is launched.
    """
    from triage.errors import HostError, hint
    from triage.knowledge.flag_file import flag_file
    from triage.session.tables import generate as read

    version, rows, date = read(python)
    text = flag_file(version, date, rows)
    if output is None:
        console.page(text.removesuffix("\n"))
        return 0
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise HostError(
            f"{output} cannot be written: {error.strerror}", hint=hint("ls", "-ld", output.parent)
        ) from error
    console.talk(f"{output}: {len(rows)} flags of sglang {version}")
    return 0

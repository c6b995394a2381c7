"""`triage doctor`: examine this machine before a launch."""

from __future__ import annotations

from pathlib import Path

import click

from triage.cli import console
from triage.errors import HostError

_FILE = click.Path(path_type=Path)


@click.command(name="doctor")
@click.argument("target", metavar="[RECIPE|CMDFILE]", required=False, type=_FILE)
@click.option("--python", metavar="PATH", default="", help="The engine's Python.")
@click.option(
    "--deep", is_flag=True, help="Also start CUDA and ask the model hub; may take seconds."
)
@click.option("--all", "every", is_flag=True, help="Show every check, sound ones too.")
@console.output_options
def command(
    target: Path | None,
    *,
    python: str,
    deep: bool,
    every: bool,
    as_json: bool,
    color: str,
    exit_zero: bool,
) -> int:
    """Examine this machine before a launch: GPUs, links, packages, host, files.

    With a recipe or a server command, what it needs is examined too: ports,
    checkpoint, divisibility, draft model, memory.

    Nothing is changed, nothing is launched, and a machine without a GPU is
    examined as far as it goes. Exit code 14: an error was found.
    """
    import sys

    if sys.platform != "linux":
        raise HostError(
            f"the facts of {sys.platform} are not known to this version: Linux only",
            hint="triage classify LOG",
        )
    from triage.render.doctor_documents import doctor_document
    from triage.render.doctor_text import doctor_text
    from triage.session.doctor import doctor

    found = doctor(target, python=python, deep=deep)
    if as_json:
        console.document(doctor_document(found.target, found.facts, found.outcomes))
    else:
        errors = any(finding.severity == "error" for finding in found.findings)
        style = "error" if errors else "good"
        text = doctor_text(found.outcomes, every=every)
        console.answer(text, style, on=console.coloured(color))
    return console.code(_code(found.findings), exit_zero=exit_zero)


def _code(findings: tuple[object, ...]) -> int:
    return 14 if any(getattr(f, "severity", "") == "error" for f in findings) else 0

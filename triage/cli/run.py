"""`triage run -- CMD`: launch once, capture, stop at the fatal line, classify."""

from __future__ import annotations

from pathlib import Path

import click

from triage.cli import console


@click.command(name="run", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD...")
@console.output_options
@click.option("--session", "folder", type=click.Path(path_type=Path), help="Where to keep the log.")
@click.option(
    "--silent", default="10m", show_default=True, help="Silence before it counts as hung."
)
@click.option("--total", default="90m", show_default=True, help="Time that the launch may take.")
@click.option(
    "--settle", default="2s", show_default=True, help="Time for other ranks after the fatal line."
)
def command(
    words: tuple[str, ...],
    *,
    as_json: bool,
    color: str,
    exit_zero: bool,
    folder: Path | None,
    silent: str,
    total: str,
    settle: str,
) -> int:
    """Launch a server once, capture its log, say whether it came up and why not.

    CMD is the server command as you would type it. Without --port it gets a
    free one. The server is stopped in any case; nothing of it stays behind.
    """
    from triage.core.launch import Ready
    from triage.core.units import parse_duration
    from triage.errors import UsageError, hint
    from triage.render.documents import diagnosis_document
    from triage.render.text import diagnosis_text
    from triage.session.evidence import evidence_lines
    from triage.session.logs import exit_code
    from triage.session.once import run_once

    if not words:
        raise UsageError(
            "no command was given",
            hint="triage run -- python -m sglang.launch_server --model-path /models/x",
        )
    try:
        silent_s, total_s, settle_s = map(parse_duration, (silent, total, settle))
    except ValueError as error:
        raise UsageError(str(error), hint="triage run --silent 10m --total 90m -- CMD") from error
    console.warn_of_the_machine()
    result = run_once(
        words, folder, silent_s=silent_s, total_s=total_s, settle_s=settle_s, say=console.talk
    )
    if as_json:
        console.document(diagnosis_document(result.diagnosis))
    else:
        style = "good" if isinstance(result.capture.outcome, Ready) else "error"
        console.answer(diagnosis_text(result.diagnosis), style, on=console.coloured(color))
    console.talk(f"log: {result.capture.log}")
    for line in evidence_lines(result.evidence, Path(result.capture.log).parent):
        console.talk(line)
    if result.diagnosis.outcome in ("failed", "hung"):
        session = Path(result.capture.log).parents[2]
        console.talk(f"next: {hint('triage', 'confirm', '--from-log', session)}")
    return console.code(exit_code(result.diagnosis), exit_zero=exit_zero)

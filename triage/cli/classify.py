"""`triage classify`: from a log to its cause."""

from __future__ import annotations

import click

from triage.cli import console
from triage.errors import hint


@click.command(name="classify")
@click.argument("logs", nargs=-1, metavar="[LOG]...")
@console.output_options
@click.option("--explain", is_flag=True, help="Show each step that led to the root line.")
def command(
    logs: tuple[str, ...], *, as_json: bool, color: str, exit_zero: bool, explain: bool
) -> int:
    """Name the cause of a failed launch from its LOG.

    LOG is a file, a folder, a glob or "-" for standard input; without LOG the
    log is read from standard input: journalctl -u sglang | triage classify
    """
    import sys

    from triage.errors import UsageError
    from triage.render.documents import diagnosis_document
    from triage.render.text import diagnosis_text
    from triage.session.logs import classify, exit_code, log_sources

    if not logs and sys.stdin.isatty():
        raise UsageError("no log was given", hint="triage classify server.log")
    sources = log_sources(logs or ("-",))
    worst = 0
    for number, source in enumerate(sources):
        diagnosis = classify(source)
        if as_json:
            console.document(diagnosis_document(diagnosis))
        else:
            if len(sources) > 1:
                console.answer(("" if number == 0 else "\n") + f"== {source}")
            text = diagnosis_text(diagnosis, explain=explain)
            style = "good" if diagnosis.outcome == "healthy" else "error"
            on = console.coloured(color)
            console.answer(text, style, on=on)
        worst = _worse(worst, exit_code(diagnosis), alone=len(sources) == 1)
    if worst == 3 and not as_json:  # noqa: PLR2004  the documented code
        files = [log for log in logs if log != "-"]
        console.talk(
            f"  try: {hint('head', '-c', 300, *files) if files else 'triage classify FILE'}"
        )
    return console.code(worst, exit_zero=exit_zero)


def _worse(one: int, other: int, *, alone: bool) -> int:
    """The code of a whole call: an unknown failure outranks a named one, both a good log."""
    if alone:
        return other
    rank = (0, 3, 13, 10, 11)
    return max(one, other, key=rank.index)

"""`triage classify`: from a log to its cause."""

from __future__ import annotations

import click

from triage.cli import console
from triage.cli.reports import guarded, knowledge_option, report_options, write
from triage.core.typed import TYPE_CHECKING
from triage.errors import hint

if TYPE_CHECKING:
    from pathlib import Path


@click.command(name="classify", cls=console.Command)
@click.argument("logs", nargs=-1, metavar="[LOG]...")
@report_options
@knowledge_option
@console.output_options
@click.option(
    "--explain", cls=console.Option, is_flag=True, help="Show each step that led to the root line."
)
def command(
    logs: tuple[str, ...],
    *,
    junit: Path | None,
    sarif: Path | None,
    github: bool,
    knowledge: tuple[Path, ...],
    as_json: bool,
    color: str,
    exit_zero: bool,
    explain: bool,
) -> int:
    """Name the cause of a failed launch from its LOG.

    LOG is a file, a folder, a glob or "-" for standard input; without LOG the
    log is read from standard input: journalctl -u sglang | triage classify
    """
    import sys

    from triage.errors import UsageError
    from triage.finder.kept import kept_patterns
    from triage.session.logs import causes, classify, exit_code, log_sources

    click.get_current_context().with_resource(kept_patterns())
    if not logs and sys.stdin.isatty():
        raise UsageError("no log was given", hint="triage classify server.log")
    sources = log_sources(logs or ("-",))
    known = causes(knowledge)
    reported = bool(junit or sarif or github)
    results = []
    worst = 0
    for number, source in enumerate(sources):
        diagnosis = classify(source, known=known)
        if as_json:
            from triage.render.documents import diagnosis_document

            console.document(diagnosis_document(diagnosis))
        else:
            from triage.render.text import diagnosis_text

            if len(sources) > 1:
                console.answer(("" if number == 0 else "\n") + f"== {source}")
            text = diagnosis_text(diagnosis, explain=explain)
            style = "good" if diagnosis.outcome == "healthy" else "error"
            on = console.coloured(color)
            console.answer(guarded(text, github=github), "" if github else style, on=on)
        if reported:
            from triage.session.check import uncompared

            results.append(uncompared(source, diagnosis))
        worst = _worse(worst, exit_code(diagnosis), alone=len(sources) == 1)
    if reported:
        title = "triage classify"
        write(results, known, title, junit=junit, sarif=sarif, github=github, as_json=as_json)
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

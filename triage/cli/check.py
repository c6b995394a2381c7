"""`triage check`: compare recorded cases with what is found in their logs."""

from __future__ import annotations

from pathlib import Path

import click

from triage.cli import console
from triage.cli.reports import guarded, knowledge_option, report_options, write


@click.command(name="check")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@report_options
@knowledge_option
@console.output_options
def command(
    folder: Path,
    *,
    junit: Path | None,
    sarif: Path | None,
    github: bool,
    knowledge: tuple[Path, ...],
    as_json: bool,
    color: str,
    exit_zero: bool,
) -> int:
    """Compare the cases in DIR with what is found in their logs.

    A case is a folder with server.log and case.yaml, which says what to expect.
    A case that is marked as known miss must differ; one that does not is reported.
    """
    from triage.core.results import Comparison
    from triage.core.results import found as findings
    from triage.render.comparison import comparison_document, comparison_text
    from triage.session.check import case_files, compared, logs_without_case, place, watched
    from triage.session.knowledge import causes
    from triage.session.reports import redactor, without_names

    known = causes(knowledge)
    files = case_files(folder)
    results = tuple(watched(compared(files, known), len(files), "cases", console.progress()))
    shown = Comparison(
        folder=redactor().text(place(str(folder))),
        results=without_names(results),
        without=tuple(map(redactor().text, logs_without_case(folder))),
    )
    found = findings(results)
    if as_json:
        console.document(comparison_document(shown))
    else:
        on = console.coloured(color)
        text = guarded(comparison_text(shown), github=github)
        console.answer(text, "" if github else "error" if found else "good", on=on)
    title = f"triage check {place(str(folder))}"
    write(results, known, title, junit=junit, sarif=sarif, github=github, as_json=as_json)
    return console.code(14 if found else 0, exit_zero=exit_zero)

"""`triage issue`: the report to the engine's authors."""

from __future__ import annotations

from pathlib import Path

import click

from triage.cli import console


@click.command(name="issue")
@click.argument("source", metavar="[SESSION|LOG]", required=False, type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the Markdown here.")
@click.option(
    "--attach",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Copy the logs into DIR, without secrets and names.",
)
@console.output_options
def command(
    source: Path | None,
    *,
    output: Path | None,
    attach: Path | None,
    as_json: bool,
    color: str,
    exit_zero: bool,
) -> int:
    """Write the report to the engine's authors, from a session or a failed log.

    It has the fields of their form (SGLang's, or vLLM's for its logs): what fails beside
    the nearest that starts, the first failing rank's traceback and phase, what was ruled
    out, versions, and the logs to attach. Secrets and names are taken out, and it is cut
    to what the site takes. Without an argument the newest session is taken.
    """
    from triage.cli.runbook import write
    from triage.errors import UsageError, hint
    from triage.session.issue import attach as copy_logs
    from triage.session.issue import report
    from triage.store import newest_session

    path = source or newest_session()
    if not path.exists():
        raise UsageError(f"{path} does not exist", hint=hint("ls", path.parent))
    found = report(path)
    if output is not None:
        write(output, found.text)
    if as_json:
        from triage.render.issue_document import issue_json

        console.document(issue_json(found))
    elif output is not None:
        console.answer(str(output))
    else:
        console.page(found.text.removesuffix("\n"))
    if attach is not None:
        for file in copy_logs(found, path, attach):
            console.talk(f"to attach: {file}")
    if found.simulated:
        console.talk("note: this is simulated; it must not be filed")
    else:
        console.talk(f"note: read it before you file it: {found.form.address}")
    return console.code(0, exit_zero=exit_zero)

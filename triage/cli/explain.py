"""`triage explain CAUSE`: the knowledge file of a cause, for reading."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from triage.cli import console


def complete_cause(_ctx: click.Context, _param: click.Parameter, part: str) -> list[CompletionItem]:
    """The causes whose id begins so, for a shell."""
    from triage.session.logs import causes

    return [CompletionItem(c.id, help=c.title) for c in causes() if c.id.startswith(part)]


@click.command(name="explain")
@click.argument("cause", shell_complete=complete_cause)
@console.output_options
def command(cause: str, *, as_json: bool, color: str, exit_zero: bool) -> int:
    """Tell what CAUSE means, what brings it about, what it is confused with, what helps.

    CAUSE is an id as `triage classify` prints it; `triage causes list` has all.
    """
    from triage.render.knowledge_text import cause_document, cause_text
    from triage.session.knowledge import one_cause
    from triage.session.logs import causes

    found = one_cause(cause, causes())
    if as_json:
        console.document(cause_document(found))
    else:
        console.answer(cause_text(found), "strong", on=console.coloured(color))
    return console.code(0, exit_zero=exit_zero)

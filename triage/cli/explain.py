"""`triage explain CAUSE`: the knowledge file of a cause, for reading."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from triage.cli import console


def _complete(_ctx: click.Context, _param: click.Parameter, part: str) -> list[CompletionItem]:
    from triage.session.logs import causes

    return [CompletionItem(c.id, help=c.title) for c in causes() if c.id.startswith(part)]


@click.command(name="explain")
@click.argument("cause", shell_complete=_complete)
@console.output_options
def command(cause: str, *, as_json: bool, color: str, exit_zero: bool) -> int:
    """Tell what CAUSE means, what it is confused with, and what helps.

    CAUSE is an id as `triage classify` prints it; `triage causes list` has all.
    """
    from triage.errors import UsageError
    from triage.render.knowledge_text import cause_document, cause_text
    from triage.session.logs import causes

    known = {one.id: one for one in causes()}
    if cause not in known:
        import difflib

        near = difflib.get_close_matches(cause, known, 1)
        say = f"triage explain {near[0]}" if near else "triage causes list"
        raise UsageError(f"there is no cause {cause!r}", hint=say)
    if as_json:
        console.document(cause_document(known[cause]))
    else:
        console.answer(cause_text(known[cause]), "strong", on=console.coloured(color))
    return console.code(0, exit_zero=exit_zero)

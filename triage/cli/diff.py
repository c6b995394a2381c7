"""`triage diff GOOD BAD`: what differs between two launches, and what moved with it."""

from __future__ import annotations

import click

from triage.cli import console

FOUND = 14


@click.command(name="diff")
@click.argument("good")
@click.argument("bad")
@click.option("--all", "everything", is_flag=True, help="Show also what says nothing, and why.")
@click.option("--no-resolve", is_flag=True, help="Do not ask the engine about commands.")
@click.option("--exit-code", is_flag=True, help="Exit 14 if something differs.")
@console.output_options
def command(
    good: str,
    bad: str,
    *,
    everything: bool,
    exit_code: bool,
    no_resolve: bool,
    as_json: bool,
    color: str,
    exit_zero: bool,
) -> int:
    """Compare two launches: flags, resolved arguments, environment, versions.

    GOOD and BAD are each a log, a file with a server command, a session, or
    SESSION:TRIAL. A session alone stands for the trial that starts with the
    most of what is wanted (GOOD), or for the failure under search (BAD).

    Of two commands the engine itself tells what it makes of them: it is
    imported in its own Python, and nothing is launched.

    Fields that the engine moved by itself stand below the flag that moved them.
    Memory, the timeline and what the engine says that it chose are compared too.
    """
    from triage.render.diff_document import diff_document
    from triage.render.diff_text import diff_text
    from triage.session.diff import diff

    found = diff(good, bad, ask=not no_resolve, say=console.talk)
    if as_json:
        console.document(diff_document(found))
    else:
        text = diff_text(found, everything=everything)
        console.answer(text, "strong", on=console.coloured(color))
    return console.code(FOUND if exit_code and not found.equal else 0, exit_zero=exit_zero)

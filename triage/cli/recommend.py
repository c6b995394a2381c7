"""`triage recommend`: what to change, from a log or from a session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from triage.cli import console
from triage.errors import NothingError, UsageError, hint

if TYPE_CHECKING:
    from triage.render.proposals import Shown
    from triage.session.proposals import Written


@click.command(name="recommend")
@click.argument("source", metavar="[LOG|SESSION]", required=False)
@click.option(
    "--command",
    "command_file",
    type=click.Path(path_type=Path),
    help="The command that was typed; the answer comes in its form.",
)
@click.option("--pick", type=click.IntRange(min=1), help="Print this proposal's command in full.")
@click.option("--every", is_flag=True, help="Print the command of every proposal in full.")
@click.option(
    "--launches", type=click.IntRange(min=1), default=6, help="The most launches of the plan."
)
@click.option("--here", is_flag=True, help="The LOG is of this machine: its GPUs count as facts.")
@console.output_options
def command(
    source: str | None,
    *,
    command_file: Path | None,
    pick: int | None,
    every: bool,
    launches: int,
    here: bool,
    as_json: bool,
    color: str,
    exit_zero: bool,
) -> int:
    """Show what to change so that a failed server starts.

    From a LOG: the ways out that are known for its failure, best first, with the
    command to paste. From a SESSION of `triage bisect`: the working
    configuration that changes least; without an argument, of the newest one.
    """
    from triage.store import newest_session

    path = Path(source) if source and source != "-" else None
    argv: tuple[str, ...] | None = None
    if path is None and source is None:
        path = newest_session()
    if path is not None and (path / "session.json").exists():
        argv = _single(path)
        if argv is None:
            if command_file is not None:
                raise UsageError(
                    "--command is for a log: a session knows its own command",
                    hint=hint("triage", "recommend", path),
                )
            return _of_session(path, pick or 0, as_json=as_json, color=color, exit_zero=exit_zero)
        source = str(path / "trials" / "001" / "server.log")
    elif path is not None and path.is_dir() and not any(path.rglob("*.log")):
        raise NothingError(
            f"{path} holds no session and no log", hint=hint("triage", "bisect", "--help")
        )
    return _of_log(
        source or "-",
        command_file,
        pick or 0,
        launches,
        argv=argv or (),
        here=here,
        every=every,
        as_json=as_json,
        color=color,
        exit_zero=exit_zero,
    )


def _single(path: Path) -> tuple[str, ...] | None:
    """The words of a session that holds a single launch; None of one that holds a search."""
    from triage.store import SessionFolder

    session = SessionFolder.open(path)
    return tuple(session.facts.get("argv", ())) if session.single else None


def _of_log(
    log: str,
    command_file: Path | None,
    pick: int,
    launches: int,
    *,
    argv: tuple[str, ...],
    here: bool,
    every: bool,
    as_json: bool,
    color: str,
    exit_zero: bool,
) -> int:
    from triage.render.proposals import proposals_document, proposals_text
    from triage.session.proposals import advise, typed_in

    advised = advise(log, command_file, typed=typed_in(argv) if argv else None, here=here)
    found = advised.found
    if pick > len(found.options):
        raise UsageError(
            f"there is no proposal {pick}: there are {len(found.options)}",
            hint=hint("triage", "recommend", log),
        )
    shown = [_shown(advised.written(option)) for option in found.options]
    if as_json:
        document = proposals_document(
            advised.source, found, shown, given=advised.given, budget=launches
        )
        console.document(document)
    else:
        text = proposals_text(found, shown, picked=pick, every=every, budget=launches)
        style = "strong" if found.options else "error"
        console.answer(text, style, on=console.coloured(color))
    if not advised.given and not as_json:
        console.talk(
            "the command is rebuilt from what the engine printed, defaults that it resolved"
            " included; with --command FILE it is your own"
            if advised.command
            else "the log does not tell the command; with --command FILE it is printed, too"
        )
    if found.launchable and not as_json and log != "-":
        given = ("--command", command_file) if command_file else ()
        console.talk(f"next: {hint('triage', 'confirm', '--from-log', log, *given)}")
    if not found.launchable and not as_json:
        console.talk("next: triage bisect --good WORKING --bad FAILING  # finds it by launching")
    return console.code(0 if found.options else 12, exit_zero=exit_zero)


def _of_session(path: Path, pick: int, *, as_json: bool, color: str, exit_zero: bool) -> int:
    from triage.render.proposals import command_text, option_documents, untried_text
    from triage.render.search_documents import recommendation_document
    from triage.render.session_text import recommendation_text
    from triage.session.proven import proven

    found = proven(path)
    shown = found.recommendation
    options = found.found.options
    if pick > len(options):
        raise UsageError(
            f"there is no proposal {pick}: there are {len(options)}",
            hint=hint("triage", "recommend", path),
        )
    if as_json:
        every = [_shown(found.written(option)) for option in options]
        document = recommendation_document(shown)
        console.document({**document, "proposals": option_documents(options, every)})
    else:
        style = "good" if shown.config is not None else "error"
        text = recommendation_text(shown, found.problem)
        if more := untried_text(found.found):
            text += f"\n\n{more}"
        if options:
            pasted = _shown(found.written(options[(pick or 1) - 1]))
            text += "".join(f"\n\n{part}" for part in command_text(pick or None, pasted))
        console.answer(text, style, on=console.coloured(color))
    if shown.config is not None:
        console.talk(f"next: {hint('triage', 'confirm', found.session.path)}")
    return console.code(0 if shown.config is not None else 12, exit_zero=exit_zero)


def _shown(written: Written) -> Shown:
    from triage.render.proposals import Shown

    return Shown(
        text=written.text, language=written.language, diff=written.diff, notes=written.notes
    )

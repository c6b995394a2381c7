"""`triage confirm`: launch one configuration and prove that it works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from triage.cli import console
from triage.errors import UsageError, hint

if TYPE_CHECKING:
    from triage.core.handover.confirmation import Confirmation
    from triage.core.launch import Patience
    from triage.recipe import Confirm
    from triage.session.confirm import Wish
    from triage.store import SessionFolder

_FILE = click.Path(path_type=Path)


def _levels(ctx: click.Context, option: click.Parameter, given: str | None) -> tuple[int, ...]:
    """The numbers of `1,64`."""
    del ctx, option
    try:
        levels = tuple(int(word) for word in (given or "").split(",") if word.strip())
    except ValueError:
        raise click.BadParameter(f"{given!r} is no list of numbers like 1,64") from None
    if any(not 1 <= level <= 4096 for level in levels):  # noqa: PLR2004  as in a recipe
        raise click.BadParameter(f"{given}: each level is 1 to 4096 requests at once")
    return levels


def _seconds(ctx: click.Context, option: click.Parameter, given: str | None) -> float | None:
    """The seconds of `2m`."""
    from triage.core.units import parse_duration

    del ctx, option
    try:
        return None if given is None else parse_duration(given)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command(name="confirm")
@click.argument("what", metavar="[SESSION|RECIPE|CMDFILE]", required=False, type=_FILE)
@click.option(
    "--concurrency",
    "levels",
    callback=_levels,
    metavar="1,64",
    help="Also send so many requests at once, level by level.",
)
@click.option("--requests", type=click.IntRange(1), help="How many at each level.")
@click.option("--tokens", type=click.IntRange(1), help="How long each answer is.")
@click.option(
    "--load-time", callback=_seconds, metavar="2m", help="How long a level may take at most."
)
@click.option("--repeat", type=click.IntRange(1, 100), help="Start it so often: N of N.")
@click.option("--any-text", is_flag=True, help="Random weights: the answers need not be text.")
@click.option("--patience", callback=_seconds, metavar="10m", help="Silence that means hung.")
@click.option(
    "--from-log",
    "log",
    type=_FILE,
    metavar="LOG",
    help="Of a failed launch: try what is recommended until something works.",
)
@click.option(
    "--command", "command_file", type=_FILE, metavar="CMDFILE", help="The command of that LOG."
)
@click.option("--launches", type=click.IntRange(1), default=6, help="Proposals to try at most.")
@click.option(
    "--largest", metavar="FLAG=LOW..HIGH", help="Find the largest value that works, by halving."
)
@click.option("--session", "folder", type=_FILE, help="Keep the launches of CMDFILE here.")
@click.option("--landscape", type=_FILE, help="Let the simulated engine play this.")
@click.option("--speed", type=console.Above0(1e6), help="How much faster it is than life.")
@console.take_over_option
@click.option("--dry-run", is_flag=True, help="Show the command, launch nothing.")
@console.output_options
def command(
    what: Path | None,
    *,
    levels: tuple[int, ...],
    requests: int | None,
    tokens: int | None,
    load_time: float | None,
    repeat: int | None,
    any_text: bool,
    patience: float | None,
    log: Path | None,
    command_file: Path | None,
    launches: int,
    largest: str | None,
    folder: Path | None,
    landscape: Path | None,
    speed: float | None,
    take_over: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
    color: str,
    exit_zero: bool,
) -> int:
    """Launch one configuration in full and prove that it works.

    Of a SESSION that is its proposal; without anything the newest session is
    taken. Any server command can be confirmed: a script, a one-line command, a
    systemd unit, an SGLang --config YAML, the log of a launch.

    It works if its own listener answers, twice alike at temperature 0 and with
    text; if speculation, where it is on, accepts tokens; if the KV pool holds
    the context; if the load that is asked for brings no error; and if each of
    the repeated starts comes up.

    With --from-log it ends in a server that answered, or says honestly that
    none did: it launches the proposals of triage recommend one after the other,
    also against the failures that show up behind the first.
    """
    from triage.core.launch import Patience
    from triage.session.candidate import named
    from triage.store import newest_session

    if dry_run and as_json:
        raise UsageError("a dry run is shown as text only", hint="triage confirm --dry-run")
    waits = Patience(silent_s=patience) if patience else None
    if not dry_run:
        console.take_over(take_over)

    def wish(asked: Confirm) -> Wish:
        return _wish(
            asked, levels=levels, requests=requests, tokens=tokens, load_time=load_time,
            repeat=repeat, any_text=any_text,
        )  # fmt: skip

    if not dry_run and landscape is None:
        console.warn_of_the_machine()
    if log is not None or largest is not None:
        return _mend(
            what=what, log=log, command_file=command_file, largest=largest, wish=wish,
            patience=waits, launches=launches, folder=folder, landscape=landscape, speed=speed,
            dry_run=dry_run, as_json=as_json, color=color, exit_zero=exit_zero,
        )  # fmt: skip
    found = named(what or newest_session(), landscape=landscape, speed=speed, patience=waits)
    for note in found.notes:
        console.talk(f"note: {note}")
    if found.search is not None:
        return _proposal(
            found.search, wish, dry_run=dry_run, as_json=as_json, color=color, exit_zero=exit_zero
        )
    from triage.render.confirmation import confirmation_document
    from triage.session.candidate import command_session
    from triage.session.confirm import prove
    from triage.session.handover import CONFIRMATION

    assert found.candidate is not None  # noqa: S101  it is one or the other
    if dry_run:
        console.answer(found.candidate.command)
        return 0
    session = command_session(found, folder)
    console.talk(f"session: {session.path}{' (simulated)' if found.replay else ''}")
    shown = prove(session, found.candidate, wish(found.asked), console.talk)
    session.write(CONFIRMATION, confirmation_document(shown))
    return _answer(session, shown, as_json=as_json, color=color, exit_zero=exit_zero)


def _mend(
    *,
    what: Path | None,
    log: Path | None,
    command_file: Path | None,
    largest: str | None,
    wish: Callable[[Confirm], Wish],
    patience: Patience | None,
    launches: int,
    folder: Path | None,
    landscape: Path | None,
    speed: float | None,
    dry_run: bool,
    as_json: bool,
    color: str,
    exit_zero: bool,
) -> int:
    """Launch until something works, from a log or along the values of a flag."""
    from triage.cli.mend import from_command, from_log, run, sought
    from triage.recipe import Confirm
    from triage.session.search import Replay

    if largest is not None and (what is None or log is not None):
        raise UsageError(
            "--largest needs the command whose flag it changes, and no log",
            hint="triage confirm CMDFILE --largest context-length=1024..32768:1024",
        )
    if log is not None and what is not None:
        raise UsageError(
            "--from-log takes the command with --command",
            hint=hint("triage", "confirm", "--from-log", log, "--command", what),
        )
    replay = Replay(landscape=landscape, speed=speed or 60.0) if landscape else None
    if log is not None:
        broken = from_log(log, command_file, replay=replay, patience=patience)
    else:
        broken = from_command(what or Path(), replay=replay, patience=patience)
    return run(
        broken, wish(Confirm()), seek=sought(largest) if largest else None, launches=launches,
        folder=folder, dry_run=dry_run, as_json=as_json, color=color, exit_zero=exit_zero,
    )  # fmt: skip


def _wish(
    asked: Confirm,
    *,
    levels: tuple[int, ...],
    requests: int | None,
    tokens: int | None,
    load_time: float | None,
    repeat: int | None,
    any_text: bool,
) -> Wish:
    """What the recipe asks for, and what the command line says instead."""
    from dataclasses import replace

    from triage.session.handover import wish_of

    wish = wish_of(asked, repeat)
    load = replace(
        wish.load,
        requests=requests or wish.load.requests,
        tokens=tokens or wish.load.tokens,
        seconds=load_time or wish.load.seconds,
    )
    return replace(
        wish, levels=levels or wish.levels, load=load, any_text=any_text or wish.any_text
    )


def _proposal(
    path: Path,
    wish: Callable[[Confirm], Wish],
    *,
    dry_run: bool,
    as_json: bool,
    color: str,
    exit_zero: bool,
) -> int:
    """Confirm what a search proposes."""
    from triage.session.handover import confirm, proposed_command
    from triage.store import SessionFolder

    if dry_run:
        console.answer(proposed_command(path))
        return 0
    mark = " (simulated)" if SessionFolder.open(path).facts["simulated"] else ""
    console.talk(f"session: {path}{mark}")
    folder, shown = confirm(path, wish, console.talk)
    return _answer(folder, shown, as_json=as_json, color=color, exit_zero=exit_zero)


def _answer(
    session: SessionFolder, shown: Confirmation, *, as_json: bool, color: str, exit_zero: bool
) -> int:
    """Print what came of it, and what to type next."""
    from triage.render.confirmation import confirmation_document, confirmation_text

    if as_json:
        console.document(confirmation_document(shown))
    else:
        style = "good" if shown.confirmed else "error"
        console.answer(confirmation_text(shown), style, on=console.coloured(color))
    if not shown.confirmed:
        log = session.path / next((s for s in shown.starts if not s.up), shown.starts[0]).folder
        console.talk(f"  try: {hint('triage', 'classify', log / 'server.log')}")
    elif not session.single:
        console.talk(f"next: {hint('triage', 'runbook', session.path)}")
    code = 0 if shown.confirmed else 13 if shown.flaky else 12
    return console.code(code, exit_zero=exit_zero)

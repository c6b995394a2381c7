"""`triage confirm --from-log` and `--largest`: launch until something works."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from triage.cli import console
from triage.errors import HostError, NothingError, UsageError, hint

if TYPE_CHECKING:
    from triage.core.config import ServerCommand
    from triage.core.handover.mending import Mending
    from triage.core.launch import Patience
    from triage.session.confirm import Wish
    from triage.session.mend import Broken
    from triage.session.search import Replay
    from triage.store import SessionFolder


def from_log(
    log: Path,
    command_file: Path | None,
    *,
    replay: Replay | None,
    patience: Patience | None,
) -> Broken:
    """The failed launch that a log tells of, with the command that made it.

    `log` may be the folder of a `triage run`, which knows its command.

    Raises:
        NothingError: the log is of no launch, or of one that came up.
        UsageError: the command is not known.
        HostError: the command cannot be launched by this version.
    """
    from triage.command import read_command_file
    from triage.session.logs import classify, flag_table
    from triage.session.mend import Broken
    from triage.session.prepare import check_launchable
    from triage.session.trial import stored_diagnosis, stored_outcome

    session, source = _single(log)
    stored = session is not None and stored_outcome(source.parent) is not None
    diagnosis = stored_diagnosis(source.parent) if stored else classify(str(source))
    if diagnosis.outcome in ("empty", "healthy"):
        said = "is of no launch" if diagnosis.outcome == "empty" else "is of a launch that came up"
        raise NothingError(f"{source} {said}", hint=hint("triage", "classify", source))
    if command_file is not None:
        command = read_command_file(command_file, flag_table())
    else:
        command = _told(session, source, log)
    check_launchable(command_file or log, command)
    return Broken(
        source=str(source),
        diagnosis=diagnosis,
        command=_placed(command),
        cwd=Path.cwd(),
        patience=patience,
        replay=replay,
    )


def _single(log: Path) -> tuple[SessionFolder | None, Path]:
    """The session of the single launch that this is or lies in, and the log."""
    from triage.store import SessionFolder

    if log.is_dir():
        session = SessionFolder.open(log)
        if not session.single:
            raise UsageError(
                f"{log} holds a search, not a single launch", hint=hint("triage", "confirm", log)
            )
        return session, log / "trials" / "001" / "server.log"
    try:
        found = SessionFolder.open(log.absolute().parents[2])
    except (IndexError, NothingError, UsageError):
        return None, log
    return (found if found.single else None), log


def _told(session: SessionFolder | None, source: Path, log: Path) -> ServerCommand:
    """The command that the launch's session or the log itself tells."""
    from triage.command import read_command_file
    from triage.session.candidate import launched_command
    from triage.session.logs import flag_table

    if session is not None and session.facts.get("argv"):
        return launched_command(session)
    try:
        return read_command_file(source, flag_table())
    except (UsageError, HostError) as error:
        raise UsageError(
            f"{log} does not tell the command that was launched",
            hint=hint("triage", "confirm", "--from-log", log, "--command", "CMDFILE"),
        ) from error


def _placed(command: ServerCommand) -> ServerCommand:
    """The command less host and port: each launch gets its own."""
    return replace(command, config=command.config.without(("host", "port")))


def from_command(path: Path, *, replay: Replay | None, patience: Patience | None) -> Broken:
    """A command that a number is searched for; nothing is known to have failed.

    Raises: as `from_log`.
    """
    from triage.command import read_command_file
    from triage.core.diagnosis import Diagnosis
    from triage.session.candidate import launched_command
    from triage.session.logs import flag_table
    from triage.session.mend import Broken
    from triage.session.prepare import check_launchable
    from triage.store import SessionFolder

    if path.is_dir():
        command = launched_command(SessionFolder.open(path))
    else:
        command = read_command_file(path, flag_table())
    check_launchable(path, command)
    return Broken(
        source=str(path),
        diagnosis=Diagnosis(source=str(path), outcome="empty"),
        command=_placed(command),
        cwd=Path.cwd(),
        patience=patience,
        replay=replay,
    )


def sought(text: str) -> tuple[str, tuple[str, ...]]:
    """Flag and values of `mem-fraction-static=0.5..0.9:0.05`.

    Raises:
        UsageError: it is not of this form, or names no flag with a value.
    """
    from triage.core.flags import Known
    from triage.core.search.largest import grid
    from triage.session.logs import flag_table

    name, _, span = text.lstrip("-").partition("=")
    ends, _, step = span.partition(":")
    low, dots, high = ends.partition("..")
    if not (name and dots and low and high):
        raise UsageError(
            f"--largest {text}: it is written FLAG=LOW..HIGH or FLAG=LOW..HIGH:STEP",
            hint="triage confirm CMDFILE --largest context-length=1024..32768:1024",
        )
    found = flag_table().lookup(f"--{name}")
    if isinstance(found, Known) and found.spec.style != "value":
        raise UsageError(f"--largest: --{name} takes no number", hint="triage confirm --help")
    try:
        values = grid(low, high, step)
    except ValueError as error:
        raise UsageError(f"--largest: {error}", hint="triage confirm --help") from None
    return (found.spec.name if isinstance(found, Known) else name), values


def run(
    broken: Broken,
    wish: Wish,
    *,
    seek: tuple[str, tuple[str, ...]] | None,
    launches: int,
    folder: Path | None,
    dry_run: bool,
    as_json: bool,
    color: str,
    exit_zero: bool,
) -> int:
    """Launch until something works; print what was tried and what came of it."""
    from triage.core.search.largest import most_launches
    from triage.render.confirmation import confirmation_document
    from triage.render.mending import mending_document, mending_text
    from triage.session.candidate import Named, candidate_of, command_session
    from triage.session.handover import CONFIRMATION
    from triage.session.mend import Bench, largest, mend

    if dry_run:
        return _dry_run(broken, seek)
    candidate = candidate_of(broken.command, cwd=broken.cwd, replay=broken.replay)
    session = command_session(Named(candidate=candidate, replay=broken.replay), folder)
    console.talk(f"session: {session.path}{' (simulated)' if broken.replay else ''}")
    if seek is not None:
        console.talk(f"at most {most_launches(len(seek[1]))} launches for {len(seek[1])} values")
    bench = Bench(session, broken, wish, console.talk)
    found = largest(bench, *seek) if seek else mend(bench, budget=launches)
    session.write("mending.json", mending_document(found))
    if found.confirmation is not None:
        session.write(CONFIRMATION, confirmation_document(found.confirmation))
    if as_json:
        console.document(mending_document(found))
    else:
        style = "good" if found.works else "error"
        console.answer(mending_text(found), style, on=console.coloured(color))
    return console.code(_code(found), exit_zero=exit_zero)


def _dry_run(broken: Broken, seek: tuple[str, tuple[str, ...]] | None) -> int:
    """What would be launched first, and in which order."""
    from triage.core.search.largest import most_launches
    from triage.core.wording import spell
    from triage.session.proposals import proposals_of

    if seek is not None:
        flag, values = seek
        console.answer(
            f"--{flag} {values[0]} to {values[-1]}: at most {most_launches(len(values))} launches"
        )
        return 0
    found = proposals_of(broken.diagnosis, broken.command.config)
    for number, option in enumerate(found.launchable, start=1):
        console.answer(f"{number}  {', '.join(map(spell, option.changes))}: {option.say}")
    if not found.launchable:
        console.answer("nothing is known that a launch could try")
    return 0


def _code(found: Mending) -> int:
    if found.works:
        return 0
    return 13 if found.stop in ("flaky", "contradiction") else 12

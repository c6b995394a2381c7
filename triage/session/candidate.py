"""What is to be confirmed: from whatever names one server configuration to a Candidate.

In:  a recipe, a server command in any form, or the folder of a single launch.
Out: a Candidate in a session of its own.
Not: launching it (confirm.py) or proposals of a search (handover.py).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from triage.command import read_argv, read_command_file
from triage.core.config import ServerCommand, argv
from triage.core.hide import is_hidden
from triage.core.launch import Container, Patience, Process
from triage.core.redact import redact_text, redact_words
from triage.errors import HostError, UsageError, hint
from triage.recipe import Confirm
from triage.session.confirm import Candidate
from triage.session.logs import flag_table
from triage.session.prepare import check_launchable, prepare
from triage.session.search import Replay
from triage.session.trial import Setup, replay_setup
from triage.store import SessionFolder, find_session

_RECIPE = re.compile(rb"(?m)^\s*[\"']?schema[\"']?\s*:\s*[\"']?triage\.recipe/")
_HEAD = 1 << 16
USUAL_PROGRAM = ("python", "-m", "sglang.launch_server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What a word on the command line stands for: a stored search, or one candidate.

    `asked` is what its recipe wants of a confirmation. `notes` say what was assumed.
    """

    search: Path | None = None
    candidate: Candidate | None = None
    name: str = ""
    replay: Replay | None = None
    asked: Confirm = field(default_factory=Confirm)
    notes: tuple[str, ...] = ()


def named(
    path: Path,
    *,
    landscape: Path | None = None,
    speed: float | None = None,
    patience: Patience | None = None,
) -> Named:
    """What this path names.

    Args:
        path: A session, a recipe, or a file with a server command in any form.
        landscape: What the simulated engine plays in place of the program.
        speed: How much faster than life.
        patience: Of the launches of a command, which names none itself.

    Raises:
        UsageError: it is none of these, or cannot be launched as it is written.
        HostError: this version cannot launch it.
    """
    if path.is_dir():
        session = SessionFolder.open(path)
        if not session.single:
            return Named(search=path)
        return _of_command(launched_command(session), path, landscape, speed, patience)
    if _is_recipe(path):
        return _of_recipe(path, landscape, speed)
    return _of_command(read_command_file(path, flag_table()), path, landscape, speed, patience)


def command_session(named_: Named, folder: Path | None) -> SessionFolder:
    """A new session for launches of one candidate, locked."""
    candidate, replay = named_.candidate, named_.replay
    session = SessionFolder.create(
        folder,
        {
            "digest": "",
            "name": "confirm",
            "engine": "replay" if replay else "sglang",
            "simulated": replay is not None,
            "replay": {"landscape": str(replay.landscape.absolute()), "speed": replay.speed}
            if replay
            else None,
            "sources": {},
            "argv": list(redact_words([*candidate.setup.program, *argv(candidate.config)]))
            if candidate
            else [],
            "cwd": str(candidate.setup.cwd) if candidate else "",
        },
    )
    session.lock()
    return session


def candidate_of(
    command: ServerCommand,
    *,
    cwd: Path,
    patience: Patience | None = None,
    replay: Replay | None = None,
    flaky: bool = False,
) -> Candidate:
    """The candidate that a server command is; it is launched in `cwd`, less its host and port."""
    setup = Setup(
        program=command.program or USUAL_PROGRAM,
        env=(),
        cwd=(cwd / command.cwd).absolute(),
        patience=patience or Patience(),
        engine="sglang",
        place=Container(run=command.wrapper) if command.wrapper and not replay else Process(),
    )
    if replay is not None:
        setup = replay_setup(setup, replay.landscape, replay.speed)
    return Candidate(
        setup=setup,
        config=command.config,
        simulated=replay is not None,
        flaky=flaky,
        command=shown((*(() if replay else command.wrapper), *setup.program), command),
    )


def shown(program: Sequence[str], command: ServerCommand) -> str:
    """The command as it may be shown: its secrets hidden, without host and port."""
    words = [*program, *argv(command.config.without(("host", "port")))]
    return redact_text(shlex.join(redact_words(words)))


def _is_recipe(path: Path) -> bool:
    if str(path) == "-" or not path.is_file():
        return False
    with path.open("rb") as file:
        return bool(_RECIPE.search(file.read(_HEAD)))


def _of_recipe(path: Path, landscape: Path | None, speed: float | None) -> Named:
    """The proposal of the newest session of this recipe, else all that it wants."""
    search = prepare(path, engine="replay" if landscape else None, landscape=landscape, speed=speed)
    if (found := find_session(search.digest())) is not None:
        return Named(search=found, asked=search.recipe.confirm)
    problem = search.recipe.problem
    config = problem.config(problem.keys())
    candidate = Candidate(
        setup=search.setup,
        config=config,
        unset=problem.unset_env(problem.keys()),
        items=problem.keys(),
        simulated=search.replay is not None,
        flaky=problem.noise.transient > 0,
        command=redact_text(shlex.join(redact_words([*search.setup.program, *argv(config)]))),
    )
    note = "no search of this recipe was made here: the whole wanted configuration is confirmed"
    return Named(
        candidate=candidate,
        name=search.recipe.name,
        replay=search.replay,
        asked=search.recipe.confirm,
        notes=(*search.recipe.notes, note),
    )


def _of_command(
    command: ServerCommand,
    path: Path,
    landscape: Path | None,
    speed: float | None,
    patience: Patience | None,
) -> Named:
    check_launchable(path, command)
    if landscape is not None and not landscape.is_file():
        raise UsageError(f"{landscape} does not exist", hint=hint("ls", landscape.parent))
    replay = Replay(landscape=landscape, speed=speed or 60.0) if landscape else None
    notes = list(command.notes)
    if not command.program and replay is None:
        notes.append(f"{path} names no program: {shlex.join(USUAL_PROGRAM)} is launched")
    notes += [
        f"the launch listens on a {name} of its own, not on the command's"
        for name in ("host", "port")
        if command.config.get(name) is not None
    ]
    candidate = candidate_of(command, cwd=Path.cwd(), patience=patience, replay=replay)
    return Named(
        candidate=candidate,
        name=path.name,
        replay=replay,
        notes=tuple(dict.fromkeys(notes)),
    )


def launched_command(session: SessionFolder) -> ServerCommand:
    """The command of a single launch, as `triage run` stored it.

    Raises:
        HostError: a secret in it was hidden.
    """
    words = [str(word) for word in session.facts.get("argv", ())]
    if any(is_hidden(word) for word in words):
        raise HostError(
            f"a secret in the command was hidden when {session.path} was stored",
            hint="triage confirm CMDFILE",
        )
    command = read_argv(words, flag_table())
    return replace(
        command,
        config=command.config.without(("host", "port")),
        cwd=str(session.facts.get("cwd", "")),
    )

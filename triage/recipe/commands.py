"""A recipe from two commands: one that starts and one that does not.

In:  two ServerCommands. Out: Recipe: the good one is the baseline, the differences are wanted.
Not: reading the commands (triage.command).
"""

from __future__ import annotations

from pathlib import Path

from triage.core.config import (
    Change,
    Config,
    ServerCommand,
    SetEnv,
    SetFlag,
    UnsetEnv,
    UnsetFlag,
    diff,
)
from triage.core.trials import Item, Problem
from triage.errors import UsageError
from triage.recipe import Recipe

# Each launch gets a port of its own, so it is no difference.
OURS = frozenset(["port"])


def compare_commands(good: ServerCommand, bad: ServerCommand, name: str) -> Recipe:
    """See triage.recipe.recipe_from_commands."""
    changes = diff(good.config.without(OURS), bad.config.without(OURS))
    items = tuple(item for change in changes if (item := _item(change)))
    if not items:
        say = "the good and the bad command set the same flags and variables"
        if changes:
            say = "the bad command only leaves out what the good one sets: nothing to bisect"
        raise UsageError(say, hint="triage diff GOOD BAD")
    return Recipe(
        name=name,
        problem=Problem(name=name, baseline=good.config, items=items),
        command=(*good.wrapper, *good.program),
        cwd=Path(good.cwd or "."),
        notes=_notes(good, bad, changes),
    )


def _item(change: Change) -> Item | None:
    match change:
        case SetFlag(name):
            return Item(key=name, change=change)
        case SetEnv(name):
            return Item(key=f"env:{name}", change=change)
        case UnsetFlag() | UnsetEnv():
            return None


def _notes(good: ServerCommand, bad: ServerCommand, changes: tuple[Change, ...]) -> tuple[str, ...]:
    notes = [f"good command: {note}" for note in good.notes]
    notes += [f"bad command: {note}" for note in bad.notes]
    if (good.wrapper, good.program) != (bad.wrapper, bad.program):
        notes.append("the two commands start the server differently: the good one's way is used")
    if good.cwd != bad.cwd:
        notes.append(f"the two commands run in different folders: {good.cwd or '.'} is used")
    for change in changes:
        match change:
            case UnsetFlag(name) | UnsetEnv(name):
                notes.append(_kept(name, good.config))
            case _:
                continue
    return tuple(notes)


def _kept(name: str, config: Config) -> str:
    shown = f"--{name}" if config.get(name) is not None else name
    return (
        f"only the good command sets {shown}: it is kept in each launch;"
        " if everything wanted then starts, its absence is what makes the bad command fail"
    )

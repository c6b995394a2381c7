"""A recipe from two commands: one that starts and one that does not.

In:  two ServerCommands. Out: Recipe: the good one is the baseline, the differences are wanted.
Not: reading the commands (triage.command).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from triage.core.config import ServerCommand, diff
from triage.core.trials import CHOICES, Item, Problem
from triage.core.wording import item_key
from triage.errors import UsageError
from triage.recipe import Recipe

# Each launch gets an address of its own, so it is no difference.
OURS = frozenset(["host", "port"])


def compare_commands(good: ServerCommand, bad: ServerCommand, name: str) -> Recipe:
    """See triage.recipe.recipe_from_commands."""
    # A log and a config file tell no environment: that of the good command stays.
    flags_only = bad.form in {"server-args", "sglang-config"}
    env = good.config.env if flags_only else bad.config.env
    wanted = replace(bad.config.without(OURS), env=env)
    changes = diff(good.config.without(OURS), wanted)
    if not changes:
        raise UsageError(
            "the good and the bad command set the same flags and variables",
            hint="triage config GOOD",
        )
    if len(changes) > CHOICES:
        raise UsageError(
            f"the two commands differ in {len(changes)} flags and variables, and a search can tell "
            f"{CHOICES} apart: take a good command that is closer to the bad one",
            hint="triage diff GOOD BAD",
        )
    items = tuple(Item(key=item_key(change), change=change) for change in changes)
    return Recipe(
        name=name,
        problem=Problem(name=name, baseline=good.config, items=items),
        target="container" if good.wrapper else "process",
        container=good.wrapper,
        command=good.program,
        cwd=Path(good.cwd or "."),
        notes=_notes(good, bad),
    )


def _notes(good: ServerCommand, bad: ServerCommand) -> tuple[str, ...]:
    notes = [f"good command: {note}" for note in good.notes]
    notes += [f"bad command: {note}" for note in bad.notes]
    if (good.wrapper, good.program) != (bad.wrapper, bad.program):
        notes.append("the two commands start the server differently: the good one's way is used")
    if good.cwd != bad.cwd:
        notes.append(f"the two commands run in different folders: {good.cwd or '.'} is used")
    return tuple(notes)

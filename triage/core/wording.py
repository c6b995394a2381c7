"""Flags, variables and sets of items in words, the same everywhere.

In:  changes, settings, sets of item keys. Out: one line of plain text each.
Not: command lines to paste (config.words, triage.command).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triage.core.config import (
    Change,
    Config,
    Flag,
    SetEnv,
    SetFlag,
    UnsetEnv,
    UnsetFlag,
    Value,
    words,
)
from triage.core.trials import Moved, Problem

ENV = "env:"  # before the name of a variable in an item's key
WITHOUT = "without:"  # before the key of what an item leaves out


def settings(config: Config) -> tuple[tuple[str, Value], ...]:
    """Flags and variables of a config under the keys that items use."""
    flags = [(flag.name, flag.value) for flag in config.flags]
    return (*flags, *((f"{ENV}{name}", value) for name, value in config.env))


def item_key(change: Change) -> str:
    """The key of the item that makes this change."""
    match change:
        case SetFlag(name):
            return name
        case SetEnv(name):
            return f"{ENV}{name}"
        case UnsetFlag(name):
            return f"{WITHOUT}{name}"
        case UnsetEnv(name):
            return f"{WITHOUT}{ENV}{name}"


def spell(change: Change) -> str:
    """The change as people say it: `ep-size 8`, `enable-x`, `NAME=value`, `without x`."""
    match change:
        case SetFlag(name, value):
            return " ".join(words(Flag(name, value))).removeprefix("--")
        case SetEnv(name, text):
            return f"{name}={text}"
        case UnsetFlag(name) | UnsetEnv(name):
            return f"without {name}"


def braces(keys: Iterable[str], problem: Problem) -> str:
    """A set of items, in the order of the problem: `{ep-size, enable-nccl-nvls}`."""
    chosen = set(keys)
    return "{" + ", ".join(item.key for item in problem.choices() if item.key in chosen) + "}"


def spell_setting(key: str, value: Value) -> str:
    """A setting under its item key, as people say it."""
    if key.startswith(WITHOUT):
        return f"without {key.removeprefix(WITHOUT).removeprefix(ENV)}"
    if key.startswith(ENV):
        return spell(SetEnv(key.removeprefix(ENV), str(value)))
    return spell(SetFlag(key, value))


def listed(names: Sequence[str]) -> str:
    """Names as people list them, at least one: "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def moved_text(moved: Moved) -> str:
    """What moved beside a trial's own change: `ep-size 1 -> 8 with moe-a2a-backend`."""
    if not moved.against:
        became = "left it at its default" if moved.after is None else f"made it {moved.after}"
        return f"{moved.name} was set to {moved.before}, and the engine {became}"
    usual = "unset" if moved.name.startswith(ENV) else "its default"
    before, after = (usual if value is None else value for value in (moved.before, moved.after))
    by = f" with {' or '.join(moved.by)}" if moved.by else ""
    return f"{moved.name.removeprefix(ENV)} {before} -> {after}{by}"


def pin_text(moved: Iterable[Moved]) -> str:
    """The recipe's line that takes what moved out of the comparison; "" if nothing can."""
    parts = []
    for one in moved:
        value = one.after if one.after is not None else one.before
        if one.against and value is not None and not one.name.startswith(ENV):
            plain = value if value.isalnum() else f'"{value}"'
            parts.append(f"{{flag: {one.name}, value: {plain}}}")
    return f"pin: [{', '.join(dict.fromkeys(parts))}]" if parts else ""


def join(keys: Iterable[str], problem: Problem) -> str:
    """The items as people list them, in the order of the problem: "a, b and c"."""
    chosen = set(keys)
    names = [item.key for item in problem.choices() if item.key in chosen]
    return listed(names) if names else "the baseline"

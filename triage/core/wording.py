"""Flags, variables and sets of items in words, the same everywhere.

In:  changes, settings, sets of item keys. Out: one line of plain text each.
Not: command lines to paste (config.words, triage.command).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triage.core.config import Config, Flag, SetEnv, SetFlag, Value, words
from triage.core.trials import Problem

ENV = "env:"  # before the name of a variable in an item's key


def settings(config: Config) -> tuple[tuple[str, Value], ...]:
    """Flags and variables of a config under the keys that items use."""
    flags = [(flag.name, flag.value) for flag in config.flags]
    return (*flags, *((f"{ENV}{name}", value) for name, value in config.env))


def spell(change: SetFlag | SetEnv) -> str:
    """The change as people say it: `ep-size 8`, `enable-x`, `no-x`, `NAME=value`."""
    if isinstance(change, SetEnv):
        return f"{change.name}={change.value}"
    return " ".join(words(Flag(change.name, change.value))).removeprefix("--")


def braces(keys: Iterable[str], problem: Problem) -> str:
    """A set of items, in the order of the problem: `{ep-size, enable-nccl-nvls}`."""
    chosen = set(keys)
    return "{" + ", ".join(item.key for item in problem.items if item.key in chosen) + "}"


def spell_setting(key: str, value: Value) -> str:
    """A setting under its item key, as people say it."""
    if key.startswith(ENV):
        return spell(SetEnv(key.removeprefix(ENV), str(value)))
    return spell(SetFlag(key, value))


def listed(names: Sequence[str]) -> str:
    """Names as people list them, at least one: "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def join(keys: Iterable[str], problem: Problem) -> str:
    """The items as people list them, in the order of the problem: "a, b and c"."""
    chosen = set(keys)
    names = [item.key for item in problem.items if item.key in chosen]
    return listed(names) if names else "the baseline"

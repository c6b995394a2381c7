"""Hide the secret values of configurations, as redact.py does those of texts.

In:  configs, changes, problems, values. Out: the same with secrets replaced.
Not: texts and logs (redact.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from triage.core.config import Change, Config, SetEnv, SetFlag, Value, apply
from triage.core.redact import MARKER, SECRET_NAME, redact_env, redact_text
from triage.core.trials import Problem

_OTHER = f"{MARKER}-2"
_TOO_COMMON = 4  # characters


def hide_config(config: Config) -> Config:
    """The config with every secret value hidden: by its name, or by its shape."""
    return Config.of(
        {flag.name: _hide_value(flag.name, flag.value) for flag in config.flags},
        redact_env(config.env_values()),
    )


def hide_change(change: Change) -> Change:
    """The change with its value hidden if it is secret."""
    match change:
        case SetFlag(name, value):
            return SetFlag(name, _hide_value(name, value))
        case SetEnv(name, text):
            return SetEnv(name, redact_env({name: text})[name])
        case _:
            return change


def hide_problem(problem: Problem) -> Problem:
    """The problem as it may be shown and stored; its items keep their keys and their effects.

    Two secrets of one name stay two: what an item changes is still changed when hidden.
    """
    baseline = hide_config(problem.baseline)
    hidden = []
    for item in problem.choices():
        change = hide_change(item.change)
        if apply(baseline, (change,)) == baseline:
            change = _other(change)
        hidden.append(replace(item, change=change))
    many = len(problem.items)
    return replace(
        problem, baseline=baseline, items=tuple(hidden[:many]), repairs=tuple(hidden[many:])
    )


def _other(change: Change) -> Change:
    """A hidden change that is not what the baseline hides under the same name."""
    match change:
        case SetFlag(name):
            return SetFlag(name, _OTHER)
        case SetEnv(name):
            return SetEnv(name, _OTHER)
        case _:
            return change


def secret_values(*configs: Config) -> tuple[str, ...]:
    """Every value of the configs that is secret by its name, the longest first."""
    values: set[str] = set()
    for config in configs:
        values |= {v for n, v in config.env if SECRET_NAME.search(n)}
        values |= {
            f.value for f in config.flags if isinstance(f.value, str) and SECRET_NAME.search(f.name)
        }
    return tuple(sorted((v for v in values if v), key=lambda v: (-len(v), v)))


def secrets_of(problem: Problem, env: Mapping[str, str]) -> tuple[str, ...]:
    """Every value of the problem and of `env` that is secret by its name, the longest first."""
    values = {v for n, v in env.items() if SECRET_NAME.search(n)}
    values |= {*secret_values(problem.baseline, problem.config(problem.keys()))}
    return tuple(sorted((v for v in values if v), key=lambda v: (-len(v), v)))


def hide_literals(text: str, secrets: Iterable[str]) -> str:
    """The text without these values where they stand as words, and without what looks secret."""
    for secret in secrets:
        if len(secret) < _TOO_COMMON:
            continue  # `1` stands in many places; beside its name it is hidden all the same
        text = re.sub(rf"(?<![\w-]){re.escape(secret)}(?![\w-])", MARKER, text)
    return redact_text(text)


def is_hidden(value: Value) -> bool:
    """Whether something of this value was hidden when it was stored."""
    parts = value if isinstance(value, tuple) else (value,)
    return any(isinstance(part, str) and MARKER in part for part in parts)


def _hide_value(name: str, value: Value) -> Value:
    match value:
        case bool():
            return value
        case str():
            return MARKER if SECRET_NAME.search(name) else redact_text(value)
        case parts:
            return tuple(redact_text(part) for part in parts)

"""Rules of what an engine refuses before it starts a process, for where it cannot be asked.

In:  the rules of one version, its flag table, a configuration. Out: the rules that refuse it.
Not: what only a device or a model decides, and asking the engine (triage.launch.resolver).

A rule is silent where it would need a value that depends on the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from triage.core.config import Config, Value, argv
from triage.core.flags import FlagTable
from triage.core.records import dataclass
from triage.core.resolution import Resolution


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One thing that a rule asks of one flag; exactly one of these is not None."""

    flag: str
    given: bool | None = None  # whether the command sets it
    equals: tuple[str, ...] | None = None  # its value is one of these
    other_than: tuple[str, ...] | None = None  # ... is none of these
    over: float | None = None
    under: float | None = None
    not_multiple_of: str | None = None  # of another flag's value
    holds: str | None = None  # its text has this in it


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A refusal: all conditions hold. `message` is how the engine's own message begins or goes."""

    id: str
    when: tuple[Condition, ...]
    exception: str
    message: str
    refused: Config = field(default_factory=Config)  # an example of each
    accepted: Config = field(default_factory=Config)


def broken(config: Config, rules: Sequence[Rule], table: FlagTable) -> tuple[Rule, ...]:
    """The rules that refuse the configuration, in their order."""
    values = config.flag_values()
    return tuple(
        rule for rule in rules if all(_holds(condition, values, table) for condition in rule.when)
    )


def judged(config: Config, rules: Sequence[Rule], table: FlagTable, version: str) -> Resolution:
    """The knowledge base's answer: what it knows to be refused, else nothing is known.

    Words that no parser of this version takes are refused with status 2, checks with 1.
    """
    parsed = table.parse(argv(config))
    choices = [note for note in parsed.notes if ": not a choice of " in note]
    words = [problem.text for problem in parsed.problems] + choices
    if words and table.version == version:
        return Resolution(
            verdict="rejected",
            basis="knowledge",
            version=version,
            phase="arg-parse",
            exit_code=2,
            message=words[0],
            rules=("flag-table",),
        )
    if found := broken(config, rules, table):
        first = found[0]
        return Resolution(
            verdict="rejected",
            basis="knowledge",
            version=version,
            phase="arg-validation",
            exit_code=1,
            exception=first.exception,
            message=first.message,
            rules=tuple(rule.id for rule in found),
            log=f"{first.exception}: {first.message}\n",
        )
    return Resolution(
        verdict="unknown",
        basis="knowledge",
        version=version,
        reason="no rule of triage speaks against it, which is no proof",
    )


def _holds(condition: Condition, values: dict[str, Value], table: FlagTable) -> bool:
    c, given = condition, values.get(condition.flag)
    if c.given is not None:
        return (given not in (None, False)) is c.given
    text = _text(c.flag, values, table)
    if text is None:
        return False
    if c.equals is not None:
        return text in c.equals
    if c.other_than is not None:
        return text not in c.other_than
    if c.holds is not None:
        return c.holds in text
    number = _number(text)
    if number is None:
        return False
    if c.over is not None:
        return number > c.over
    if c.under is not None:
        return number < c.under
    other = _number(_text(c.not_multiple_of or "", values, table) or "")
    return other is not None and other > 0 and number % other != 0


def _text(flag: str, values: dict[str, Value], table: FlagTable) -> str | None:
    """The flag's value in words: the given one, else its default; None if it is not known."""
    value: object = values.get(flag)
    if value is None:
        spec = table.specs.get(flag)
        value = spec.default if spec else None
    return str(value) if isinstance(value, str | int | float) else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

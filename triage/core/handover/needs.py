"""Preconditions of a remedy, judged against what is known of a launch.

In:  conditions as knowledge files write them, and facts. Out: holds, contradicted, or not known.
Not: where facts come from (propose.py).

    --enable-symm-mem            the launch sets the flag
    no --dp-size                 it does not
    --attention-backend fa3|fa4  it has one of these values
    engine >= 0.5.20             a fact, compared as a version or a number
    gpu = B300|B200              a fact with one of these values
    message ~ proxy|502          a fact that holds one of these words
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from triage.core.config import Config, Value
from triage.core.records import dataclass
from triage.core.regex import regex

_FLAG = regex(r"(?P<no>no )?--(?P<name>[a-z][\w-]*)(?: (?P<values>\S+))?\Z")
_FACT = regex(r"(?P<name>[a-z][\w-]*) (?P<how>>=|<=|=|<|>|~) (?P<value>\S+)\Z")
_NUMBERS = regex(r"\d+")


class Truth(StrEnum):
    """What the facts say about a condition."""

    HOLDS = "holds"
    CONTRADICTED = "contradicted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Judged:
    """A condition and what is known of it; `fact` is the sentence that contradicts it."""

    need: str
    truth: Truth
    fact: str = ""


def is_need(text: str) -> bool:
    """Whether the text is a condition of one of the forms above."""
    return bool(_FLAG.match(text) or _FACT.match(text))


def judge(need: str, config: Config | None, facts: Mapping[str, str]) -> Judged:
    """What the launch's configuration and the facts say about one condition."""
    if (flag := _FLAG.match(need)) is not None:
        if config is None:
            return Judged(need, Truth.UNKNOWN)
        return _flag(need, flag["name"], config.flag_values(), flag["values"], no=bool(flag["no"]))
    found = _FACT.match(need)
    if found is None or found["name"] not in facts:
        return Judged(need, Truth.UNKNOWN)
    known = facts[found["name"]]
    if found["how"] == "~":
        words = found["value"].lower().split("|")
        if any(one in known.lower() for one in words):
            return Judged(need, Truth.HOLDS)
        said = f"the {found['name']} says nothing of {' or '.join(words)}"
        return Judged(need, Truth.CONTRADICTED, said)
    if _compare(known, found["how"], found["value"]):
        return Judged(need, Truth.HOLDS)
    return Judged(need, Truth.CONTRADICTED, f"{found['name']} is {known}")


def _flag(
    need: str, name: str, values: Mapping[str, Value], wanted: str | None, *, no: bool
) -> Judged:
    value = values.get(name)
    text = " ".join(value) if isinstance(value, tuple) else value
    shown = f"--{name}" if value is True else f"--{name} {text}"
    if no:
        if value is None:
            return Judged(need, Truth.HOLDS)
        return Judged(need, Truth.CONTRADICTED, f"the launch has {shown}")
    if value is None:
        return Judged(need, Truth.CONTRADICTED, f"the launch does not set --{name}")
    if wanted is None or text in wanted.split("|"):
        return Judged(need, Truth.HOLDS)
    return Judged(need, Truth.CONTRADICTED, f"the launch has {shown}")


def _compare(known: str, how: str, wanted: str) -> bool:
    if how == "=":
        return known in wanted.split("|")
    one, other = _numbers(known), _numbers(wanted)
    match how:
        case ">=":
            return one >= other
        case "<=":
            return one <= other
        case "<":
            return one < other
        case _:
            return one > other


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of a version or a size, less trailing zeros: 0.5.20 is 0.5.20.0."""
    found = [int(n) for n in _NUMBERS.findall(text)[:6]]
    while found and found[-1] == 0:
        found.pop()
    return tuple(found)

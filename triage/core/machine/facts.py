"""A fact, or the reason why it could not be read. An absent tool is an answer, never an exception.

In:  values. Out: Fact, Unavailable, `known`.
Not: reading anything (triage.machine) or judging it (triage.core.doctor).
"""

from __future__ import annotations

from typing import TypeAlias, TypeVar

from triage.core.records import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A fact that could not be read: why, and the command that would make it readable, or ""."""

    reason: str
    fix: str = ""


Fact: TypeAlias = T | Unavailable


class MissingFactError(Exception):
    """A judgement asked for a fact that is unavailable; only `known` raises it."""

    def __init__(self, fact: Unavailable) -> None:
        super().__init__(fact.reason)
        self.fact = fact


def known(fact: T | Unavailable) -> T:
    """The fact's value.

    Raises:
        MissingFactError: it could not be read.
    """
    if isinstance(fact, Unavailable):
        raise MissingFactError(fact)
    return fact


def known_or(fact: T | Unavailable, usual: T) -> T:
    """The fact's value, or `usual` if it could not be read."""
    return usual if isinstance(fact, Unavailable) else fact

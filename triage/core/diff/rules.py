"""What a comparison leaves out, and what is known to follow from what.

In:  nothing. Out: Rules and its parts, the values of triage/knowledge/diff.yaml and moves/.
Not: comparing (compare.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from triage.core.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """A difference that says nothing, and why.

    `key` must match the whole name of what differs, or anywhere in the text of a decision. With
    `idle`, only where each of these fields has this value on both sides.
    """

    section: str  # resolved | env | versions | decisions | memory
    key: re.Pattern[str]
    reason: str
    idle: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """A part of a decision's text that is another at each launch, and what is read in its place."""

    pattern: re.Pattern[str]
    put: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Follower:
    """A field that is only another name, or a parameter, of fields that differ.

    It is no second change: where a leader differs it is explained. With `hidden` it
    is not even shown.
    """

    name: re.Pattern[str]
    leaders: tuple[str, ...]
    reason: str
    hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvRule:
    """A variable that the engine sets without a word: `on` if any of the fields is on, else `off`.

    Empty text: it leaves the variable alone. `wins` holds if it replaces the user's own
    value when a field is on. `own` is the field whose meaning this is: for any other one it is
    a side effect.
    """

    name: str
    fields: tuple[str, ...]
    on: str
    off: str
    wins: bool
    where: str
    own: str = ""

    def value(self, fields: Mapping[str, object]) -> str:
        """What the engine makes of the variable: a switch is on if true, a size if above 1.

        Values may be those of a dump, or their text.
        """
        on = (fields.get(name) for name in self.fields)
        switched = any(
            one in (True, "True")
            if isinstance(one, bool) or not str(one).isdigit()
            else int(str(one)) > 1
            for one in on
        )
        return self.on if switched else self.off


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the engine sets a field, and the other fields that it looks at before it does."""

    where: str
    looks_at: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How far two readings may be apart and still be called the same.

    Times differ if one is `times` as long and `seconds` longer; free memory if it
    differs by `share` and by `gigabytes`.
    """

    times: float = 2.0
    seconds: float = 60.0
    share: float = 0.05
    gigabytes: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """All of it. `moves` is of `moves_version` of the engine only."""

    suppress: tuple[Suppression, ...] = ()
    masked: tuple[Masked, ...] = ()
    followers: tuple[Follower, ...] = ()
    env: tuple[EnvRule, ...] = ()
    tolerance: Tolerance = Tolerance()
    moves: Mapping[str, tuple[Place, ...]] = field(default_factory=dict)
    moves_version: str = ""

    def follower(self, name: str) -> Follower | None:
        """What is known of a field that may follow others."""
        return next((one for one in self.followers if one.name.fullmatch(name)), None)

    def reason(
        self,
        section: str,
        name: str,
        good: Mapping[str, object] | None = None,
        bad: Mapping[str, object] | None = None,
    ) -> str:
        """Why a difference is left out; "" if it is not."""
        for one in self.suppress:
            if one.section != section:
                continue
            found = one.key.search(name) if section == "decisions" else one.key.fullmatch(name)
            if found and all(
                side is not None and str(side.get(at)) == value
                for at, value in one.idle
                for side in (good, bad)
            ):
                return one.reason
        return ""

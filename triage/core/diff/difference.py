"""The answer to "what differs?", as a value.

In:  nothing. Out: Diff and its parts, field for field the document `triage.diff/1`.
Not: finding it (compare.py) or printing it (triage.render).
"""

from __future__ import annotations

from typing import Literal

from triage.core.config import Value
from triage.core.diff.side import Side
from triage.core.records import dataclass

Part = Literal["user", "resolved", "env", "versions", "timeline", "memory", "decisions"]
PARTS: tuple[Part, ...] = (
    "user", "resolved", "env", "versions", "timeline", "memory", "decisions",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedChange:
    """A flag, or `env:NAME`, that the user set differently; None: not set."""

    key: str
    good: Value | None
    bad: Value | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """A resolved field that differs.

    `flag` is the flag of that field, "" if it has none. `kind`: *typed*, the user
    set it differently; *moved*, the engine did, `by` what differs beside it; *open*, nothing
    known moves it: without the user's command it stands for what was typed.
    `where` is the place in the engine that is known to do that. `sure` is false where only that
    says that it moved: the user's command is not known.
    """

    field: str
    flag: str
    good: object
    bad: object
    kind: Literal["typed", "moved", "open"]
    by: tuple[str, ...] = ()
    where: str = ""
    also: bool = False  # it only follows what is named in `by`: no second change
    why: str = ""
    sure: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvChange:
    """A variable that differs; None: not told. `told`: by the command, the log, or a rule.

    *engine*: the engine itself said that it sets it.
    """

    name: str
    good: str | None
    bad: str | None
    told: Literal["command", "log", "rule", "engine"]
    by: tuple[str, ...] = ()
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChange:
    """A package of another version; None: not told by that side."""

    name: str
    good: str | None
    bad: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChange:
    """A phase that only one side reached, or that took much longer on one; seconds or None.

    `kind`: *good-only*, *bad-only* or *slower*.
    """

    phase: str
    kind: Literal["good-only", "bad-only", "slower"]
    good: float | None
    bad: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeChange:
    """A size that differs: the smallest and the largest of any rank; None: not printed."""

    name: str
    unit: str
    good: tuple[float, float] | None
    bad: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionChange:
    """A line of choice that only one side has; `line` is where it stands there."""

    text: str
    side: Literal["good", "bad"]
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """A difference that was left out, and why."""

    part: Part
    name: str
    good: object
    bad: object
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """All differences of two launches. `notes` say what could not be compared, by part."""

    good: Side
    bad: Side
    user: tuple[TypedChange, ...] = ()
    resolved: tuple[FieldChange, ...] = ()
    env: tuple[EnvChange, ...] = ()
    versions: tuple[VersionChange, ...] = ()
    timeline: tuple[PhaseChange, ...] = ()
    memory: tuple[SizeChange, ...] = ()
    decisions: tuple[DecisionChange, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    notes: tuple[tuple[Part, str], ...] = ()

    @property
    def equal(self) -> bool:
        """Whether nothing differs but what was left out."""
        return not any(getattr(self, part) for part in PARTS)

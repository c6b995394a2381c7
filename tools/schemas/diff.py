"""The document of a comparison, key by key.

In:  nothing. Out: Diff. Not: making it (triage/render/diff_document.py).
"""

from __future__ import annotations

from typing import Literal

from schemas.diagnosis import Engine
from schemas.parts import Closed, Document, Fingerprint, Id, Line, Number, Phase, Settings, Value

Plain = bool | int | float | str | list[bool | int | float | str | None]


class Side(Closed):
    """One of the two launches."""

    source: str
    """What was named: a path, or SESSION:TRIAL."""
    kind: Literal["log", "trial", "command"]
    """What is known of it: a log; a trial of a session, with what was typed; a command alone."""
    trial: Number | None
    """Number of the trial; null if it is none."""
    engine: Engine
    """The engine that the log is of."""
    outcome: Literal["failed", "healthy", "hung", "interrupted", "empty"] | None
    """How the launch ended; null for a command."""
    phase: Phase
    """The phase of the failure, or the last one."""
    cause: Id | None
    """Id of the cause; null if none is known."""
    fingerprint: Fingerprint | None
    """Of the failure; null if there is none."""
    simulated: bool
    """Whether the replay engine printed the log."""
    typed: Settings | None
    """What the user set; null where only the engine's own values are known."""


class _Part(Closed):
    """One part of the comparison."""

    compared: bool
    """False where one side does not tell it; `notes` say why."""
    notes: list[str]
    """What could not be compared."""


class TypedChange(Closed):
    """A flag or variable that was set differently."""

    key: str
    """Canonical flag name, or env:NAME."""
    good: Value | None
    """Value on the good side; null: not set."""
    bad: Value | None
    """Value on the bad side; null: not set."""


class User(_Part):
    """What the user set."""

    changes: list[TypedChange]
    """Flags by name, then variables."""


class FieldChange(Closed):
    """A field of the engine's resolved arguments that differs."""

    field: str
    """The engine's own name; nested ones joined by dots."""
    flag: str | None
    """The flag of that field; null if it has none."""
    good: Plain | None
    """Value on the good side."""
    bad: Plain | None
    """Value on the bad side."""
    kind: Literal["typed", "moved", "open"]
    """typed: the user set it differently; moved: the engine did; open: nothing known moves it, and
    without the user's command it stands for what was typed."""
    by: list[str]
    """What it moved with, as flags; empty if that is not known."""
    where: str | None
    """The place in the engine's source that is known to move it, as file:line; else null."""
    follows: bool
    """Whether it is only another name or a parameter of what it moved with."""
    why: str
    """Why it follows; else empty."""
    sure: bool
    """False where the command is not known: then kind is what the engine's source suggests."""


class Resolved(_Part):
    """What the engine made of the flags."""

    changes: list[FieldChange]
    """What was set or stands for it, then what moved."""


class EnvChange(Closed):
    """A variable that differs."""

    name: str
    """Its name."""
    good: str | None
    """Value on the good side; null: not told. (set) where only that is told."""
    bad: str | None
    """Value on the bad side; null: not told."""
    told: Literal["command", "log", "rule", "engine"]
    """Who tells it: the command, a line of the log, what is known of the engine, or the engine."""
    by: list[str]
    """For a rule, the differing fields that it depends on."""
    where: str | None
    """For a rule, the place in the engine's source."""


class Env(_Part):
    """Variables of the environment."""

    changes: list[EnvChange]
    """By name; those by rule last."""


class VersionChange(Closed):
    """A package in two versions."""

    name: str
    """Its name."""
    good: str
    """Version on the good side."""
    bad: str
    """Version on the bad side."""


class Versions(_Part):
    """Packages of which both sides tell the version."""

    changes: list[VersionChange]
    """By name."""


class PhaseChange(Closed):
    """A phase that only one side reached, or that took much longer on one."""

    phase: Phase
    """The phase."""
    kind: Literal["good-only", "bad-only", "slower"]
    """Which of these it is."""
    good: float | None
    """Its seconds on the good side; null if unknown."""
    bad: float | None
    """Its seconds on the bad side; null if unknown."""


class Timeline(_Part):
    """How far and how fast they came."""

    changes: list[PhaseChange]
    """In the order of a startup."""


class SizeChange(Closed):
    """A size that both printed, and not alike."""

    name: str
    """What it is the size of."""
    unit: Literal["GB", ""]
    """GB, or nothing for counts."""
    good: list[float]
    """The smallest and the largest of any rank on the good side."""
    bad: list[float]
    """The same on the bad side."""


class Memory(_Part):
    """Memory and sizes that the startup printed."""

    changes: list[SizeChange]
    """In the order of a startup."""


class DecisionChange(Closed):
    """A line in which the engine says what it chose, and that only one side has."""

    text: str
    """The line, at most 300 characters of it."""
    side: Literal["good", "bad"]
    """Who has it."""
    line: Line
    """Where it stands in that log."""


class Decisions(_Part):
    """What the engine said that it chose."""

    changes: list[DecisionChange]
    """Those of the good side first, each in the order of its log."""


class Suppressed(Closed):
    """A difference that was left out."""

    part: Literal["user", "resolved", "env", "versions", "timeline", "memory", "decisions"]
    """The part that it belongs to."""
    name: str
    """The field, variable, size or line."""
    good: Plain | None
    """On the good side."""
    bad: Plain | None
    """On the bad side."""
    reason: str
    """Why it says nothing."""


class Diff(Document):
    """What differs between two launches, and what moved with it."""

    good: Side
    """The launch that is compared with."""
    bad: Side
    """The launch in question."""
    equal: bool
    """Whether nothing differs but what was left out."""
    user: User
    """What was set."""
    resolved: Resolved
    """What the engine made of it."""
    env: Env
    """The environment."""
    versions: Versions
    """Packages."""
    timeline: Timeline
    """Phases."""
    memory: Memory
    """Sizes."""
    decisions: Decisions
    """What the engine said that it chose."""
    suppressed: list[Suppressed]
    """What was left out, each with its reason."""

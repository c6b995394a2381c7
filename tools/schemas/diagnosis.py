"""`triage.diagnosis/1`, key by key.

In:  nothing. Out: Diagnosis.
Not: making one (triage/render/documents.py).
"""

from __future__ import annotations

from typing import Literal

from schemas.parts import (
    Closed,
    Confidence,
    Count,
    Disposition,
    Document,
    Fingerprint,
    Id,
    Line,
    Phase,
    Seconds,
    SetEnv,
    SetFlag,
    Settings,
    UnsetEnv,
    UnsetFlag,
    Value,
)


class Root(Closed):
    """The line that the diagnosis rests on."""

    line: Line
    """Number of the physical line, from 1; only LF ends a line."""
    offset: Count
    """Bytes before the line in the raw log."""
    rank: str
    """The rank as the engine tags it (TP3, DP0 TP2), or main."""
    time: str | None
    """The line's time, ISO 8601; null if it has none."""
    text: str
    """The line without wrappers and colours, at most 4096 characters."""


class Frame(Closed):
    """One entry of a Python traceback."""

    file: str
    """Path of the source file as printed."""
    line: Count
    """Line of the source file, from 1."""
    function: str
    """Name of the function."""


class Traceback(Closed):
    """The exception of the root: the first of its chain."""

    exception: str
    """Qualified name of its type, as printed."""
    message: str
    """Its message, at most 4096 characters."""
    frames: list[Frame]
    """Its frames, outermost first."""


class Decoy(Closed):
    """A line that looks like the reason and is not."""

    line: Line
    """Number of the physical line, from 1."""
    why: str
    """Why it misleads."""


class Engine(Closed):
    """What wrote the log."""

    name: str
    """sglang, vllm, or unknown."""
    version: str | None
    """Its version as printed; null if the log does not say it."""


class Suspect(Closed):
    """A flag that the evidence points at."""

    flag: str
    """Canonical flag name without dashes."""
    value: Value | None
    """The value that it had; true for a switch; null if the log does not say it."""
    why: str
    """What points at it."""


class Advice(Closed):
    """A remedy of the cause, filled in for this launch."""

    say: str
    """What to do, in one sentence."""
    changes: list[SetFlag | UnsetFlag | SetEnv | UnsetEnv]
    """The edits of the configuration, in order; empty if it is not one."""
    disposition: Disposition
    """safe: same results and capacity; lossy: gives something up; manual: a person must act."""
    cost: str
    """What it gives up."""
    evidence: str
    """Who says that it helps."""


class Step(Closed):
    """A landmark that a rank passed."""

    rank: str
    """The rank as the engine tags it, or main."""
    phase: Phase
    """The phase that begins here."""
    line: Line
    """Number of the physical line, from 1."""
    seconds: Seconds | None
    """Seconds since the first dated line of the log; null without dates."""


class Alternative(Closed):
    """Another cause that would explain the log less well."""

    cause: Id
    """Its id."""
    confidence: Confidence
    """How sure that is."""


class Weighed(Closed):
    """A line that the ranking looked at."""

    line: Line
    """Number of the physical line, from 1."""
    rank: str
    """The rank as the engine tags it, or main."""
    what: str
    """Id of the cause that it matches; without one, the start of the line."""


class Explained(Closed):
    """One step of the ranking."""

    step: str
    """What the step is: the candidates, the reason why some were left out, or the root."""
    lines: list[Weighed]
    """The first of the lines that it is about."""
    count: Count
    """How many they are."""


class Diagnosis(Document):
    """Why one launch failed, read from its log; each claim with its line."""

    source: str
    """Path of the log as it was named, or <stdin>."""
    outcome: Literal["failed", "healthy", "hung", "interrupted", "empty"]
    """How the launch ended; hung is hung or cut where only the log is known; empty: no engine
    line."""
    phase: Phase
    """Where in the startup it failed; where it stood if it hung."""
    cause: Id | None
    """Id of the cause, for `triage explain`; null if none is known."""
    title: str
    """The cause in one sentence, or what can be said without one."""
    confidence: Confidence
    """How sure the diagnosis is; never a percentage."""
    fingerprint: Fingerprint | None
    """Equal for equal failures, whatever their numbers and paths; null without a failure."""
    ranks: list[str]
    """The ranks that failed first, as tagged; ["all"] if all did alike, ["main"] for the process
    without a tag."""
    ranks_total: Count
    """How many ranks the launch has."""
    root: Root | None
    """The line that the diagnosis rests on; null if no line says why."""
    traceback: Traceback | None
    """The root's exception; null if it is none."""
    cascade: list[Line]
    """Lines of failures that follow from the root; numbers from 1."""
    teardown: list[Line]
    """Lines of the shutdown itself; numbers from 1."""
    decoys: list[Decoy]
    """Lines that mislead."""
    engine: Engine
    """What wrote the log."""
    config: Settings
    """The flags that differ from the engine's defaults."""
    effective: dict[str, str]
    """The same as text, by name, with those that the flag table does not know."""
    suspects: list[Suspect]
    """Flags to try first, the strongest reason first."""
    remedies: list[Advice]
    """What helps, in the order of the knowledge file."""
    timeline: list[Step]
    """The landmarks that each rank passed, in the order of the log."""
    also: list[Alternative]
    """Other causes that would explain the log less well."""
    starts: Count
    """Starts of the engine in the log, counted from the one that is explained: the first that
    failed."""
    came_up: Line | None
    """Number of the line by which a later start was ready; null if none was."""
    standstill: list[str]
    """Where the processes of a silent launch stood, from their stacks, the odd one out first;
    empty for a log alone."""
    outside: list[str]
    """What the kernel's log and the ends of the processes add, a sentence each; empty for a log
    alone."""
    explain: list[Explained]
    """How the root was chosen: the candidates, what each step left out, the root."""
    fingerprint_of: str
    """The text that was hashed into the fingerprint."""
    simulated: bool
    """Whether the replay engine wrote the log."""
    provenance: str
    """Of a simulated log: whether its answer was recorded or assumed; else empty."""
    refused: str
    """Why the replay engine had no answer; else empty."""

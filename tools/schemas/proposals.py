"""The proposals against one failure, key by key.

In:  nothing. Out: Proposals.
Not: making the document (triage/render/proposals.py).
"""

from __future__ import annotations

from typing import Literal

from schemas.parts import (
    Closed,
    Disposition,
    Document,
    Id,
    Number,
    Phase,
    SetEnv,
    SetFlag,
    Settings,
    UnsetEnv,
    UnsetFlag,
    Weight,
)

Change = SetFlag | UnsetFlag | SetEnv | UnsetEnv


class Span(Closed):
    """Values of a flag among which one that works may be searched by launching."""

    flag: str
    """Canonical flag name without dashes."""
    values: list[str]
    """The values in the order of the search."""


class Proposal(Closed):
    """One thing to do about the failure."""

    number: Number
    """Its place, from 1; the best is first."""
    say: str
    """What to do, in a sentence."""
    kind: Literal["drop", "change", "replace", "add", "env", "manual"]
    """What it does to the command; manual: a step outside of the configuration."""
    basis: Literal["launched", "reported", "stated", "suggested", "inferred"]
    """What it rests on, from a launch here that came up to nobody's report."""
    evidence: str
    """The knowledge's own word for the basis."""
    disposition: Disposition
    """safe: same results and capacity; lossy: gives something up; manual: a person must act."""
    cost: str
    """What it gives up."""
    changes: list[Change]
    """The edits of the failing configuration; empty for a step by hand."""
    config: Settings | None
    """The configuration that they lead to; null if the failing one is not known."""
    given_up: list[str]
    """Flags, and env:NAME, that were set and no longer have their value."""
    weight: Weight
    """How much of what was wanted is given up."""
    size: int
    """How many settings differ."""
    span: Span | None
    """Further values to try, if it is a value that may be searched."""
    unsure: list[str]
    """Preconditions that nothing here shows or contradicts."""
    probe: bool
    """Whether it only finds out more: no configuration to keep."""
    trial: Number | None
    """Number of the launch that came up with it; null without one."""
    manual: bool
    """Whether there is nothing in it for a launch to try."""
    command: str
    """The command to paste, in the form of the one that was given; empty if there is none."""
    language: str
    """Syntax of the command: sh, ini or yaml."""
    diff: str
    """Unified diff from the failing command; empty if there is none."""
    notes: list[str]
    """What to know before pasting."""


class RuledOut(Closed):
    """A remedy that this launch contradicts."""

    say: str
    """What it would be."""
    changes: list[Change]
    """Its edits."""
    fact: str
    """What contradicts it."""


class Plan(Closed):
    """How the proposals are tried by launching."""

    budget: Number
    """The most launches."""
    order: list[Number]
    """Numbers of the proposals that a launch can try, in their order."""
    say: str
    """The plan in words; empty without a launch."""


class Proposals(Document):
    """The ways out of one failure, best first, and what is ruled out."""

    source: str
    """The log."""
    cause: Id | None
    """Id of the cause; null if none is known."""
    signature: str
    """Names the failure: cause id, else fingerprint."""
    title: str
    """The cause in one sentence; empty without one."""
    phase: Phase
    """Where it failed."""
    config: Settings | None
    """The failing configuration; null if neither a command nor the log tells it."""
    given: bool
    """Whether the command was given, and not rebuilt from the log."""
    proposals: list[Proposal]
    """The proposals, the best first."""
    ruled_out: list[RuledOut]
    """Remedies that this launch contradicts."""
    plan: Plan
    """How they are tried in a chain of launches."""

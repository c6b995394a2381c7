"""What `triage probe` prints and stores, key by key.

In:  nothing. Out: ProbeResult, Probes.
Not: making it (triage/render/probe_document.py).
"""

from __future__ import annotations

from typing import Literal

from schemas.parts import Closed, Confidence, Document, Id, Seconds

Fact = str | int | float | bool | list[str | int | float | bool] | None


class ExperimentPart(Closed):
    """One experiment, made in a process of its own."""

    name: str
    """What it tried."""
    outcome: Literal["passed", "failed", "crashed", "hung", "skipped"]
    """failed: an exception; crashed: a signal or an exit of its own; hung: its limit passed;
    skipped: the operation does not exist here."""
    status: str
    """Name of the failure: a status of cuBLAS, a signal, an exception; or empty."""
    detail: str
    """The error in full, or why it was skipped; or empty."""
    seconds: Seconds
    """How long it took."""
    given: dict[str, Fact]
    """What it was asked for; must_fail: it passes if it fails."""
    facts: dict[str, Fact]
    """What it found."""


class FindingPart(Closed):
    """What the result says about a cause."""

    cause: Id
    """Id of the cause."""
    effect: Literal["supports", "refutes"]
    """For or against it."""
    why: str
    """The fact."""


class RulesOutPart(Closed):
    """A flag whose remedies cannot help."""

    flag: str
    """Canonical flag name without dashes."""
    why: str
    """The fact."""


class _Result(Closed):
    """A probe, whatever happened to it."""

    probe: Id
    """Its name."""
    outcome: Literal["done", "crashed", "hung", "killed", "unavailable"]
    """done: it came to its end; unavailable: this machine or this Python cannot make it."""
    device: Literal["", "auto", "cpu", "cuda"]
    """Where it ran; empty if it did not come so far."""
    reason: str
    """Why it is not done; or empty."""
    seconds: Seconds
    """How long it took until nothing of it was left."""
    versions: dict[str, str]
    """Versions of what it rests on."""
    meaning: list[str]
    """What the outcome means, in sentences."""
    findings: list[FindingPart]
    """For and against which causes it speaks."""
    rules_out: list[RulesOutPart]
    """Remedies that cannot help."""
    experiments: list[ExperimentPart]
    """Its experiments in order."""
    output: str
    """The end of what else it printed."""


class ProbeResult(_Result, Document):
    """A probe, whatever happened to it: a crash, a hang and a kill are results."""


class ResultPart(_Result):
    """A probe, whatever happened to it."""


class AlsoPart(Closed):
    """Another cause that would explain the log."""

    cause: Id
    """Its id."""
    confidence: Confidence
    """How well, after the probes."""


class Probes(Document):
    """The probes that discriminate a failure, and the diagnosis after them."""

    source: str
    """The log."""
    cause: Id | None
    """The cause that the log shows; probes do not change it."""
    confidence: Confidence
    """Of the cause, after the probes."""
    also: list[AlsoPart]
    """Other causes, after the probes."""
    remedies: list[str]
    """What may still help."""
    changed: list[str]
    """What the probes changed, in sentences."""
    results: list[ResultPart]
    """The probes in the order in which they ran."""

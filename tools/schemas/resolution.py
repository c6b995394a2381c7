"""The document of a resolution, key by key.

In:  nothing. Out: Resolution.
Not: making it (triage/render/resolution_text.py).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from schemas.parts import Closed, Document, Id, Phase, Seconds, Settings, Value


class Place(Closed):
    """A place in a program."""

    file: str
    """Path of the file."""
    line: Annotated[int, Field(ge=0)]
    """Line of the file, from 1."""
    function: str
    """Name of the function."""


class Program(Closed):
    """What was asked."""

    name: Literal["sglang"]
    """The engine."""
    version: str
    """Its version, as it says; empty if it was not asked."""


class OverrideRow(Closed):
    """A flag that was not taken as it was given."""

    flag: str
    """Canonical flag name without dashes."""
    given: Value
    """The value of the command."""
    became: Any
    """The value that is in effect."""


class Resolution(Document):
    """What the engine makes of a configuration before it starts a process; nothing is launched."""

    verdict: Literal["accepted", "rejected", "unknown"]
    """accepted: every check before the first process passed; rejected: a launch ends in the same
    way; unknown: see reason."""
    basis: Literal["engine", "knowledge"]
    """engine: the installed engine answered; knowledge: rules of triage, as there is no engine."""
    engine: Program
    """What was asked."""
    phase: Phase
    """Where in the startup it ended."""
    exit_code: int | None
    """Exit code of a launch; null unless it is rejected."""
    signature: str | None
    """Names the failure as of a launch: cause id, else fingerprint; null unless it is rejected."""
    cause: Id | None
    """Id of the cause; null if none is known."""
    title: str
    """The cause in one sentence; empty without one."""
    exception: str
    """Qualified name of the exception's type; empty without one."""
    message: str
    """What it says."""
    frame: Place | None
    """Where it was raised; null without an exception."""
    config: Settings
    """The configuration that was asked about; secrets are REDACTED."""
    overrides: list[OverrideRow]
    """The flags that the engine did not take as they were given."""
    resolved: dict[str, Any]
    """The value of every field, in the engine's names; empty unless it is accepted."""
    env: dict[str, str | None]
    """Variables that the engine set meanwhile; null where it removed one."""
    rules: list[str]
    """Ids of the rules of the knowledge base that reject it."""
    masks: list[str]
    """What a resolution cannot see, whatever it says."""
    reason: str
    """Why nothing is known; else empty."""
    seconds: Seconds
    """Seconds for this configuration."""
    import_seconds: Seconds
    """Seconds in which the engine was imported, once for all configurations."""

"""What was tried after a failure until something worked, key by key.

In:  nothing. Out: Mending.
Not: making the document (triage/render/mending.py).
"""

from __future__ import annotations

from typing import Literal

from schemas.parts import Closed, Document, Id, Seconds, SetEnv, SetFlag, UnsetEnv, UnsetFlag
from schemas.search import Confirmation, StartCount


class Attempt(Closed):
    """One configuration that was launched."""

    say: str
    """What it tries, in a sentence."""
    fault: int
    """Which failure of the series it is against, from 1; 0: against none."""
    changes: list[SetFlag | UnsetFlag | SetEnv | UnsetEnv]
    """Its edits of the configuration that failed first; empty: the same once more."""
    works: bool
    """Whether every start of it came up and answered, and no check failed."""
    reason: str
    """Why it does not work; empty if it does."""
    count: StartCount
    """How many of its starts came up."""
    cause: Id | None
    """Id of the cause of its failure; null if none is known, or it came up."""
    title: str
    """That cause in one sentence."""
    phase: str
    """Where in the startup it failed; empty if it came up."""
    seconds: Seconds
    """Wall time of all its starts."""
    trial: str
    """Folder of the launch, relative to the session."""


class Mending(Document):
    """From a failed launch to one that works: every attempt, and the proof of the last."""

    works: bool
    """Whether it ended with a configuration that was launched and answered."""
    stop: Literal["came-up", "flaky", "budget", "nothing-left", "none-works", "contradiction"]
    """Why there is no further attempt."""
    say: str
    """The same in a sentence."""
    source: str
    """The log of the failure, or the command that a number was searched for."""
    cause: Id | None
    """Id of the cause of that failure; null if none is known."""
    title: str
    """That cause in one sentence."""
    launches: int
    """Starts of all attempts together."""
    attempts: list[Attempt]
    """What was launched, in order."""
    command: str
    """The command that works, in the form in which it was given, secrets hidden."""
    diff: str
    """What of the command changes; empty if nothing does."""
    notes: list[str]
    """What to know before pasting it."""
    confirmation: Confirmation | None
    """The proof of what works, else of the last attempt; null if nothing was launched."""

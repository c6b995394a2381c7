"""What a session keeps about itself and each launch, key by key.

In:  nothing. Out: Session, Exit.
Not: writing them (triage.store, triage.launch).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.doctor import DoctorFinding, Machine
from schemas.parts import Closed, Document, Line, Seconds


class ReplayPart(Closed):
    """What the replay engine played."""

    landscape: str
    """Absolute path of the landscape."""
    speed: Annotated[float, Field(gt=0)]
    """How many times faster than life."""


class Session(Document):
    """What one investigation is about: session.json."""

    created: str
    """When it was begun, ISO 8601 with offset."""
    digest: str
    """Equal for the same problem on the same engine; empty for a single launch."""
    name: str
    """The recipe's name; run for a single launch."""
    engine: Literal["sglang", "replay"]
    """What is launched."""
    simulated: bool
    """Whether the replay engine answers."""
    replay: ReplayPart | None
    """What the replay engine plays; null for a real engine."""
    sources: dict[str, str]
    """Role (good, bad) -> the command as the user gave it, secrets redacted."""
    origin: dict[str, str] = {}  # noqa: RUF012  pydantic copies it
    """Role (recipe, good, bad) -> absolute path of the file it was made of; only of a search."""
    notes: list[str] = []  # noqa: RUF012  pydantic copies it
    """What had to be assumed to read what the user gave."""
    ended: str | None = None
    """Why the search ended, as in `reason` of the recommendation; absent while it goes on."""
    argv: tuple[str, ...] = ()
    """The command as it was typed; only of a single launch."""
    cwd: str = ""
    """The folder in which it was launched; only of a single launch."""
    machine: Machine | None = None
    """What machine it is, as it was before the first launch; only of a search."""
    findings: list[DoctorFinding] = []  # noqa: RUF012  pydantic copies it
    """What triage doctor found before the first launch; only of a search."""


class ReadyEnd(Closed):
    """It answered a generation, and was stopped then."""

    answer: str
    """The text generated, or the token ids where there is no text."""


class CrashedEnd(Closed):
    """It ended, printed a line after which it cannot start, or does not do its work."""

    exit_code: int | None
    """As it ended by itself; negative: the signal; null: triage stopped it."""
    fatal_line: Line | None
    """Number of the line that made triage stop it, from 1."""
    reason: str
    """Else why triage stopped it, such as an answer of HTTP 500; or empty."""


class HungEnd(Closed):
    """No new output and no exit for longer than the patience."""

    silent_s: Seconds
    """Seconds without a new byte."""
    limit: str
    """The patience that ended: a phase, silent or total."""


class InterruptedEnd(Closed):
    """Somebody ended the launch."""

    by: str
    """Who."""


class ProcessEnd(Closed):
    """How one process of the launch ended."""

    pid: Annotated[int, Field(ge=1)]
    """Its number on this machine, or on its node."""
    name: str
    """What it called itself: its title, else its program and the module that a Python runs."""
    rank: str
    """The rank that its title names, or empty."""
    exit_code: int | None
    """Exit code; negative: the signal; null: nobody could tell."""
    seconds: float | None
    """Seconds from the start of the launch to its end; null if that was not seen."""
    by_us: bool
    """Whether triage was ending the launch by then."""


class Exit(Document):
    """How one launch ended: exit.json."""

    how: Literal["ready", "crashed", "hung", "interrupted", "failed"]
    """How it ended; failed: triage itself could not go on."""
    outcome: ReadyEnd | CrashedEnd | HungEnd | InterruptedEnd | None
    """The details; null if it could not be judged."""
    exit_code: int | None
    """Exit code of the main process; negative: the signal, also one that triage sent."""
    seconds: Seconds
    """Seconds from the start until nothing of it was left."""
    pids: list[Annotated[int, Field(ge=1)]]
    """Every process that it had."""
    removed: list[str]
    """What it left behind and triage removed: paths of files and shared memory."""
    stuck: list[str]
    """Processes that survived SIGKILL, with their state."""
    said: list[str]
    """What the service manager, container engine, scheduler or kernel told of it."""
    processes: list[ProcessEnd]
    """How each of its processes ended, in the order of time."""
    unseen: str
    """Why nothing is known of its processes, or empty."""

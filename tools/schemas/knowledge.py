"""What triage prints of its knowledge and of a server command, key by key.

In:  nothing. Out: Causes, Check, Cause, Command.
Not: making them (triage.render, triage.cli).
"""

from __future__ import annotations

from typing import Literal

from schemas.parts import Closed, Disposition, Document, Id, Phase, RoleName, Value


class CausesRow(Closed):
    """One cause of the list."""

    id: Id
    """Its id."""
    role: RoleName
    """What a matching line says about a failure."""
    title: str
    """The cause in one sentence."""


class Causes(Document):
    """Every cause of the knowledge base."""

    causes: list[CausesRow]
    """The causes: those that can be the root first, each group by id."""


class Check(Document):
    """What is wrong with a folder of cause files."""

    folder: str
    """The folder that was checked."""
    found: list[str]
    """One sentence a finding; empty if there is nothing to report."""


class Culprits(Closed):
    """What the cause makes suspect."""

    flags: list[str]
    """Canonical flag names without dashes."""
    env: list[str]
    """Names of variables."""


class CauseRemedy(Closed):
    """A general way out."""

    say: str
    """What to do; {name} stands for a part of the line that matched."""
    changes: str
    """The edits as they would be typed, or empty."""
    disposition: Disposition
    """safe: same results and capacity; lossy: gives something up; manual: a person must act."""
    cost: str
    """What it gives up."""
    evidence: str
    """Who says that it helps."""


class CauseOrigin(Document):
    """One thing that may bring a cause about."""

    say: str
    """What it is."""
    basis: Literal["report", "code", "hypothesis"]
    """How it is known: a public report, the engine's code, or not at all yet."""
    look: str
    """What would show that it is this one."""
    sources: list[str]
    """Addresses of the reports."""


class Cause(Document):
    """A named reason why a server does not start, or a named kind of noise."""

    id: Id
    """Its id; never changes."""
    title: str
    """The cause in one sentence."""
    role: RoleName
    """What a matching line says: root can be the reason, confirm supports one, cascade follows
    from one, teardown is noise of the shutdown, advice is printed advice, benign occurs in
    healthy launches."""
    phases: list[Phase]
    """Where it may be the root; empty: anywhere."""
    means: str
    """What it means."""
    confused_with: list[Id]
    """Causes that look alike."""
    probe: list[str]
    """Names of the probes that tell them apart."""
    doctor: list[str]
    """Checks of triage doctor that tell of it before a launch."""
    decoys: list[str]
    """Lines that mislead where it is the reason."""
    culprits: Culprits
    """What it makes suspect."""
    remedies: list[CauseRemedy]
    """What helps, the best first."""
    origins: list[CauseOrigin]
    """What may bring it about, the likeliest first."""
    discriminator: str
    """The one test that tells most of the origins apart; may be empty."""
    escalate: str
    """When to go to whom with it; may be empty."""
    examples: list[str]
    """Lines that it matches."""
    sources: list[str]
    """Where it was seen."""


class Command(Document):
    """What a server command sets, in canonical names."""

    form: Literal[
        "argv", "shell", "docker", "systemd", "sbatch", "kubernetes", "sglang-config", "server-args"
    ]
    """The form in which the command was given."""
    program: list[str]
    """The words before the server's flags."""
    wrapper: list[str]
    """The words of the container runtime up to the image; else empty."""
    flags: dict[str, Value]
    """As in triage.diagnosis/1, config."""
    env: dict[str, str]
    """Variable name -> value, as the command sets it."""
    notes: list[str]
    """What the reader had to assume."""

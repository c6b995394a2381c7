"""What triage prints of many logs at once, key by key.

In:  nothing. Out: Comparison, Clusters, Audit, Draft.
Not: making them (triage.render, triage.cli).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.parts import Closed, Count, Document, Fingerprint, Id, Line, Phase

Share = Annotated[float, Field(ge=0, le=1)]


class CaseDifference(Closed):
    """One departure from what a case expects."""

    key: str
    """Key of triage.diagnosis/1, with dots: root.line."""
    say: str
    """What was expected and what was found."""
    line: Line | None
    """Line of the log to look at."""


class CaseResult(Closed):
    """One case."""

    name: str
    """Name of its folder."""
    log: str
    """Path of its log, relative to the working folder if it lies within."""
    status: Literal["expected", "differs", "known-miss", "mended", "unreadable"]
    """expected: nothing differs; known-miss: it differs and is marked so; mended: it is marked
    so and does not differ; unreadable: the case or its log cannot be read."""
    expected: Id | None
    """The cause that the case names."""
    cause: Id | None
    """The cause that was found."""
    found: str | None
    """What was found, in words; null if nothing could be read."""
    line: Line | None
    """Line of the log that the result rests on."""
    differences: list[CaseDifference]
    """What differs, in order of the keys of the case."""
    note: str
    """Why it cannot be read, or why it is known to be missed."""


class CaseCounts(Closed):
    """How many cases have which status."""

    expected: Count
    """As expected."""
    differs: Count
    """Different."""
    unreadable: Count
    """The case or its log cannot be read."""
    mended: Count
    """Marked as a known miss, but as expected."""
    known_miss: Count = Field(alias="known-miss")
    """Different, and marked so."""


class Comparison(Document):
    """What recorded cases expect, compared with what is found in their logs."""

    folder: str
    """The folder that was compared."""
    cases: Count
    """How many cases it holds."""
    counts: CaseCounts
    """How many of them have which status."""
    results: list[CaseResult]
    """The cases, by path."""
    without_case: list[str]
    """Logs without a case.yaml beside them."""


class ClusterPlace(Closed):
    """The log that stands for a group."""

    log: str
    """Its path, relative to the working folder if it lies within."""
    line: Line | None
    """Its root line."""


class ClusterMember(Closed):
    """One log of a group."""

    log: str
    """Its path, relative to the working folder if it lies within."""
    line: Line | None
    """Its root line."""
    phase: Phase
    """Where it failed."""
    fingerprint: Fingerprint | None
    """Its fingerprint, as in triage.diagnosis/1."""
    exact_fingerprint: Fingerprint
    """Of the message as printed and of every frame with its line."""
    similarity: Share
    """Share of the words of its message that the group's example has too; 1: same fingerprint."""


class Cluster(Closed):
    """Failures that are alike."""

    fingerprint: Fingerprint | None
    """The fingerprint of most of its logs; null: their end says nothing about a configuration."""
    frame_fingerprint: Fingerprint | None
    """Of the exception's type and the innermost frame of the engine's own."""
    outcome: Literal["failed", "hung"]
    """How the launches ended."""
    text: str
    """The root line of the example, or how it ended."""
    example: ClusterPlace
    """The log that stands for the group."""
    phases: list[Phase]
    """Where they failed, the most frequent first."""
    members: list[ClusterMember]
    """Its logs, by path."""


class Clusters(Document):
    """The failures that no cause explains, in groups."""

    logs: Count
    """How many logs were read."""
    unknown: Count
    """How many of them failed or hung without a cause."""
    level: Literal["near", "frame", "default", "exact"]
    """What a group has in common: near: the default fingerprint, or the type of the exception and
    seven of ten words; else the fingerprint of that name."""
    groups: list[Cluster]
    """The groups, the largest first."""
    next: list[str]
    """The words of the command that drafts a cause for the largest group; empty: there is none."""


class Draft(Document):
    """A cause that was drafted from a log."""

    id: Id
    """The cause's id."""
    cause_file: str
    """The file that was written."""
    case: str
    """The folder with the redacted log and its case.yaml."""
    wins: bool
    """Whether the draft is what explains the log, together with all known causes."""
    left: list[str]
    """What a person has still to write, a sentence a key."""


class ConfusionCell(Closed):
    """Cases that show another cause than they should."""

    expected: str
    """The cause that was expected, or the outcome where none was."""
    found: str
    """The cause that was found, or the outcome."""
    cases: Count
    """How many cases."""


class AuditEntry(Closed):
    """One thing to mend."""

    kind: Literal["confusion", "no-case", "shadowed", "no-confuser-case", "common-literal"]
    """confusion: taken for another; no-case: wins no case; shadowed: a pattern that never wins;
    no-confuser-case: a look-alike that has no case; common-literal: a plain text of a pattern that
    is frequent in healthy logs."""
    about: str
    """The cause, or the outcome that was expected."""
    say: str
    """What is wrong."""
    suggest: str
    """What to do about it."""


class Audit(Document):
    """The knowledge base judged by recorded cases."""

    folder: str
    """The folder of the cases."""
    cases: Count
    """How many cases."""
    causes: Count
    """How many causes that can be the root."""
    benign_bytes: Count
    """The size of the healthy logs."""
    confusion: list[ConfusionCell]
    """The confusion matrix without its diagonal."""
    found: list[AuditEntry]
    """What to mend; empty if there is nothing to report."""

"""What people judge of an investigation, and no launch shows: kept apart, with its evidence.

In:  nothing. Out: Assumption, Worth, Doubt.
Not: what launches showed (triage.core.search.claims).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """What is taken for granted, on which evidence, and whether and how it was verified."""

    say: str
    evidence: str = ""
    verified: str = "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """Whether an item is worth more hours: the judgement, its reasons, what would change it.

    `basis` says what kind of evidence the reasons are: modelled, measured, reported.
    """

    item: str
    say: str
    because: tuple[str, ...] = ()
    basis: str = ""
    revisit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A claim that others make and that the evidence does not show, with what would show it."""

    claim: str
    why: str
    would_show: str = ""

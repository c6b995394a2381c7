"""Everything that one investigation found, in one value.

In:  nothing. Out: Investigation.
Not: writing it up (runbook.py) or loading it (triage.store).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import join as shell_join

from triage.core.advice.values import Advice
from triage.core.causes import Cause
from triage.core.diagnosis import Diagnosis
from triage.core.evidence import Evidence
from triage.core.handover.confirmation import Confirmation
from triage.core.handover.judged import Assumption, Doubt, Worth
from triage.core.search.recommend import Recommendation
from triage.core.trials import Entry, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One launch to be drawn: what it was, its diagnosis, and the second of its end."""

    what: str
    diagnosis: Diagnosis
    ended_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Investigation:
    """All that a runbook is made of.

    `base_command` is the one that worked before, if it was given; `old_command` the
    wanted one that failed, `new_command` the proposed one, all in the form in which
    people keep it (`command_language` names that form for highlighting). `assumptions`
    and `reported` are the recipe's own words: what it takes for granted, and what
    others report that nobody measured here. `context` are the lines of the log around the
    root, with their numbers; `launches` those whose timelines are drawn; `environment`
    names and values of the machine, the engine and triage; `evidence` what launches left, by
    the number of the trial.
    """

    problem: Problem
    journal: tuple[Entry, ...]
    recommendation: Recommendation
    diagnosis: Diagnosis | None = None  # of the launch that showed the failure under search
    diagnosed: frozenset[str] | None = None  # the items of that launch; None: all that was wanted
    confirmation: Confirmation | None = None
    causes: Sequence[Cause] = ()
    base_command: str = ""
    old_command: str = ""
    new_command: str = ""
    command_language: str = "sh"
    program: tuple[str, ...] = ()  # the words before the server's flags
    cwd: str = ""  # where the launches ran, if a path of the command is relative to it
    session: str = ""  # path of the session's folder, for the commands to type next
    assumptions: tuple[Assumption, ...] = ()
    worth: tuple[Worth, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    advice: Advice | None = None  # None: model or GPU are unknown
    reported: tuple[str, ...] = ()
    context: tuple[tuple[int, str], ...] = ()
    launches: tuple[Launch, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    evidence: tuple[tuple[int, Evidence], ...] = ()

    def command(self, name: str, *options: str) -> str:
        """A command of triage on this investigation's session, to be typed."""
        return shell_join(["triage", name, *options, *([self.session] if self.session else [])])

    @property
    def simulated(self) -> bool:
        """Whether any launch in it came from the replay engine."""
        return (
            self.recommendation.simulated
            or any(entry.simulated for entry in self.journal)
            or (self.diagnosis is not None and self.diagnosis.simulated)
            or (self.confirmation is not None and self.confirmation.simulated)
        )

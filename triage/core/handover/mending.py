"""From a failed launch to one that works: what was tried, in order, and how it ended.

In:  nothing. Out: Attempt, Mending.
Not: choosing what to try (chain.py, triage.core.search.largest) or launching (triage.session).
"""

from __future__ import annotations

from dataclasses import dataclass

from triage.core.config import Change
from triage.core.handover.confirmation import Confirmation


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One configuration that was launched, and its confirmation.

    `fault` is the failure that it is against, from 1 in the series, 0 if it is against none.
    `changes` are edits of the configuration that failed first. `cause`, `title` and `phase` are
    of the failure that it showed, empty if it came up.
    """

    say: str
    changes: tuple[Change, ...]
    shown: Confirmation
    fault: int = 1
    cause: str | None = None
    title: str = ""
    phase: str = ""
    seconds: float = 0.0

    @property
    def works(self) -> bool:
        """Whether these launches allow to say so."""
        return self.shown.confirmed


@dataclass(frozen=True, slots=True, kw_only=True)
class Mending:
    """All attempts, and why there is no further one.

    `source` is the log of the failure, or the command that a number was searched for;
    `cause` and `title` name that failure. `stop` is came-up, flaky, budget, nothing-left,
    none-works or contradiction, `say` a sentence about it. `text` is the command that
    works, in the form in which it was given, `diff` the difference; secrets are hidden.
    """

    source: str
    cause: str | None = None
    title: str = ""
    attempts: tuple[Attempt, ...] = ()
    stop: str
    say: str
    text: str = ""
    language: str = "sh"
    diff: str = ""
    notes: tuple[str, ...] = ()

    @property
    def confirmation(self) -> Confirmation | None:
        """The last one that works, else the last one at all."""
        working = [attempt.shown for attempt in self.attempts if attempt.works]
        every = [attempt.shown for attempt in self.attempts]
        return next(iter(reversed(working or every)), None)

    @property
    def works(self) -> bool:
        """Whether it ended with a configuration that was launched and answered."""
        return self.stop == "came-up" and any(attempt.works for attempt in self.attempts)

    @property
    def launches(self) -> int:
        """Starts of all attempts together."""
        return sum(max(1, len(attempt.shown.starts)) for attempt in self.attempts)

"""What is left of the candidates, step by step, and why the others are not.

In:  candidates, and steps that leave some out. Out: Ranking, with what to say of each step.
Not: the steps themselves (cascade.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triage.core.diagnosis import Explained, Weighed
from triage.core.log.candidates import Candidate
from triage.core.records import dataclass, field

_SAID = 12  # candidates named of a step


@dataclass(slots=True)
class Ranking:
    """The candidates that are left, and how they came to be."""

    left: list[Candidate]
    steps: list[Explained] = field(default_factory=list)

    def drop(self, why: str, gone: Callable[[Candidate], bool]) -> list[Candidate]:
        """Leave out what `gone` holds for; these."""
        dropped = [c for c in self.left if gone(c)]
        self.remove(why, dropped)
        return dropped

    def remove(self, why: str, dropped: Sequence[Candidate]) -> None:
        """Leave out these."""
        if dropped:
            self.left = [c for c in self.left if c not in dropped]
            self.say(why, dropped)

    def back(self, why: str, again: Sequence[Candidate]) -> None:
        """Take these in again."""
        if again:
            self.left += again
            self.say(why, again)

    def say(self, step: str, concerned: Sequence[Candidate]) -> None:
        """Remember a step, and the lines that it is about."""
        lines = tuple(_weighed(c) for c in concerned[:_SAID])
        self.steps.append(Explained(step=step, lines=lines, count=len(concerned)))


def _weighed(c: Candidate) -> Weighed:
    return Weighed(line=c.line, rank=c.rank, what=c.cause.id if c.cause else c.text[:100])

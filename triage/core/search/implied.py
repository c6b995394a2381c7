"""What a search knows of configurations that it did not launch.

In:  a Problem and its journal. Out: Implied: how many, and what follows for them.
Not: which launch is next (plan.py), or claims about the proposal (claims.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triage.core.search.journal import read_journal
from triage.core.search.space import space_of
from triage.core.trials import Entry, Problem

COUNTED = 14  # flags; of more, combinations are not counted


@dataclass(frozen=True, slots=True)
class Implied:
    """Combinations that the rules allow, by what the launches say of each.

    `asked` have an answer. If adding a flag never repairs a failure, `fails` more fail, as
    each holds a set that failed, and `starts` more start, as each lies inside one that did;
    `open` is the rest.
    """

    asked: int
    fails: int
    starts: int
    open: int

    @property
    def total(self) -> int:
        """All that the rules allow."""
        return self.asked + self.fails + self.starts + self.open


def implied(problem: Problem, journal: Sequence[Entry]) -> Implied | None:
    """The counts; None where there are too many combinations to count, or launches lie."""
    known = read_journal(problem, journal)
    space = space_of(known.problem)
    if space.n > COUNTED or problem.noise:
        return None
    bad = [space.mask(keys) for keys in known.failing()]
    good = [space.mask(keys) for keys in known.starting()]
    asked = {*bad, *good}
    fails = starts = rest = 0
    for mask in range(1 << space.n):
        if mask in asked or not space.lawful(mask):
            continue
        if any(one & ~mask == 0 for one in bad):
            fails += 1
        elif any(mask & ~one == 0 for one in good):
            starts += 1
        else:
            rest += 1
    return Implied(len(asked), fails, starts, rest)

"""The causes that a journal points at, and how far each is shown.

In:  a Problem and its journal. Out: Suspected sets, the surest first.
Not: the sets that launches have shown to fail (reduce.py has those, with their trials).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triage.core.search.belief import Belief, belief_of
from triage.core.search.goals import marginals, shown, truth
from triage.core.search.journal import read_journal
from triage.core.trials import Entry, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspected:
    """A set of items that is probably the whole cause of one failure.

    `chance` holds under the model only. `shown`: the set was launched alone and failed so.
    `minimal`: it was shown, and with any one item less the failure is known not to show.
    """

    items: frozenset[str]
    signature: str
    chance: float
    shown: bool
    minimal: bool


def suspected(problem: Problem, journal: Sequence[Entry]) -> tuple[Suspected, ...]:
    """The likeliest causes of the failures seen, as a whole; for `first` what was shown.

    For a problem whose baseline or wanted launch has no answer yet: nothing.
    """
    known = read_journal(problem, journal)
    if not known.failing():
        return ()
    belief = belief_of(known)
    return _of(belief, problem.goal)


def _of(belief: Belief, goal: str) -> tuple[Suspected, ...]:
    space, names = belief.space, belief.evidence.names
    alone = {(s.mask, s.failure): s.proved for s in shown(belief)}
    chances = marginals(belief)
    causes, _ = truth(belief)
    if goal == "first" or not causes:
        causes = [(s.mask, s.failure) for s in shown(belief) if s.proved or s.mask != space.full]
    found = [
        Suspected(
            items=frozenset(space.keys[j] for j in space.bits(mask & ~space.repairs)),
            signature=names[d],
            chance=round(chances.get((mask, d), 0.0), 4),
            shown=(mask, d) in alone,
            minimal=alone.get((mask, d), False),
        )
        for mask, d in causes
    ]
    return tuple(sorted(found, key=lambda s: (not s.minimal, not s.shown, -s.chance)))

"""All that a journal makes believable about one problem, computed once a step.

In:  a Known and its entries. Out: Belief.
Not: the next launch (goals.py) or words for people (plan.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from triage.core.search.actions import Actions, Worth, actions_of
from triage.core.search.bound import Bar, minimal
from triage.core.search.evidence import Evidence, evidence_of
from triage.core.search.joint import Hypotheses, hypotheses
from triage.core.search.journal import Known
from triage.core.search.likelihood import Likelihoods, likelihoods
from triage.core.search.space import Space

SURE = 0.97


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """The posterior after a journal.

    `best` is the worthiest mask that started and is believed to start, None if there is
    none. `better` is how likely something worth more than it starts. `closed` are masks
    that must not be launched: they have an answer, or stayed unresolved too often.
    """

    evidence: Evidence
    likelihoods: Likelihoods
    hypotheses: Hypotheses
    actions: Actions
    best: int | None
    better: float
    starts: float
    closed: frozenset[int]

    @property
    def open(self) -> float:
        """Bits by which the best configuration is not decided."""
        share = np.bincount(self.actions.region, weights=self.hypotheses.weight)
        share = share[share > 0]
        return float(-(share * np.log2(share)).sum())

    @property
    def space(self) -> Space:
        """The problem in bits."""
        return self.evidence.space

    @property
    def explained(self) -> bool:
        """Whether any hypothesis explains the journal."""
        return len(self.hypotheses) > 0

    def bars(self) -> list[Bar]:
        """Smallest masks that failed and are believed to fail."""
        if not self.evidence.noise:
            return self.evidence.bars
        bad = self.evidence.failed
        if not bad or not self.explained:
            return []
        sure = self.fails(bad) >= SURE
        return [Bar(m) for m in minimal(m for m, yes in zip(bad, sure, strict=True) if yes)]

    def fails(self, masks: Sequence[int]) -> np.ndarray:
        """(P,) how likely each mask fails."""
        held = self.hypotheses.fails(np.array(masks, dtype=np.uint64))
        return np.asarray(held @ self.hypotheses.weight)

    def luck(self, salt: int = 0) -> np.random.Generator:
        """Numbers that look random and are the same for the same journal."""
        masks = self.evidence.masks
        digest = int(np.bitwise_xor.reduce(masks)) if len(masks) else 0
        return np.random.default_rng([digest & 0xFFFFFFFF, digest >> 32, len(masks), salt])


def belief_of(known: Known) -> Belief:
    """The posterior of a journal, a pure function of it."""
    evidence = evidence_of(known, known.entries)
    space = evidence.space
    found = likelihoods(evidence)
    h = hypotheses(found)
    worth = Worth(space)
    actions = actions_of(h, worth)
    lost = frozenset(space.mask(keys) for keys in known.given_up())
    started = sorted(evidence.started, key=lambda m: (-space.value(m), space.bits(m)))
    best, starts, better = None, 0.0, 1.0
    if len(h):
        failing = (h.fails(np.array(started, dtype=np.uint64)) @ h.weight).tolist()
        for mask, bad in zip(started, failing, strict=True):
            if bad <= 1 - SURE or not evidence.noise:
                best, starts = mask, 1 - float(bad)
                break
        if best is not None:
            better = float(h.weight[actions.best > space.value(best) + 1e-9].sum())
    elif started and not evidence.noise:
        best, starts = started[0], 1.0
    return Belief(
        evidence=evidence,
        likelihoods=found,
        hypotheses=h,
        actions=actions,
        best=best,
        better=better,
        starts=starts,
        closed=lost if evidence.noise else lost | evidence.asked,
    )

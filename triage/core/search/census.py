"""Up to four flags: every set of one to three causes, weighed, none of them drawn.

In:  Likelihoods. Out: Census: how likely each pattern of failures is, and what launches show.
Not: more causes (exact.py keeps a little weight for what has none here) or the next launch.

The hypotheses of joint.py are drawn from the same model; here there are so few that all
are looked at, and what no launch could show takes no share from what there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations, product
from math import factorial

import numpy as np

from triage.core.search.candidates import Floats, Ints, Masks
from triage.core.search.evidence import STARTED
from triage.core.search.joint import NESTED, NEVER, SAME
from triage.core.search.likelihood import Likelihoods, phase_mass

# How much 1, 2 and 3 causes weigh: not how often they are met, but what keeps the search as
# short as one flag at a time for each number of them. Even weights take a fifth fewer launches
# where there is one cause, and a few in a hundred more where there are three.
COUNTS = (0.0, 0.1, 0.3, 0.6)
SHOWN = (1.0, 1.0, 0.66, 0.31)  # share of such sets of which a launch can show every cause
EITHER = 0.4  # of two unseen causes, one inside the other, the larger has the earlier phase
MOST = len(COUNTS) - 1
LAST = 1 << 20


@lru_cache(maxsize=64)
def _sets(count: int, size: int) -> Ints:
    """(S, size) places of candidates, each set once."""
    found = list(combinations(range(count), size))
    return np.array(found, dtype=np.int64).reshape(-1, size)


@lru_cache(maxsize=64)
def _labels(names: int, stretches: int, size: int) -> Ints:
    """(K, size) failures of a set's causes; every seen one is among them, the rest is unseen."""
    every = product(range(names + stretches), repeat=size)
    seen = set(range(names))
    return np.array([one for one in every if seen <= set(one)], dtype=np.int64).reshape(-1, size)


@dataclass(frozen=True, slots=True, eq=False)
class Census:
    """R hypotheses of at most MOST causes.

    `weight` (R,) sums to 1. `pattern` (R,): bit i is set if the i-th mask fails.
    `mask` (R, MOST) holds NEVER where there is no cause, `label` (R, MOST) which failure it
    is, unseen ones by the stretch of their phase, and `order` (R, MOST) which shows first.
    """

    weight: Floats
    pattern: Ints
    mask: Masks
    label: Ints
    order: Ints

    def __len__(self) -> int:
        return len(self.weight)

    def shares(self, rows: np.ndarray | None = None) -> dict[int, float]:
        """The weight of each pattern, of these rows."""
        pattern = self.pattern if rows is None else self.pattern[rows]
        weight = self.weight if rows is None else self.weight[rows]
        kinds, back = np.unique(pattern, return_inverse=True)
        sums = np.bincount(back.ravel(), weights=weight, minlength=len(kinds))
        return dict(zip(kinds.tolist(), sums.tolist(), strict=True))

    def answers(self, mask: int) -> list[np.ndarray]:
        """(R,) rows by what a launch of the mask would show; that it starts comes first."""
        inside = (self.mask & ~np.uint64(mask)) == 0
        first = np.where(inside, self.order, LAST).argmin(axis=1)
        shown = np.where(
            inside.any(axis=1), np.take_along_axis(self.label, first[:, None], 1)[:, 0], STARTED
        )
        return [shown == answer for answer in (STARTED, *np.unique(shown[shown >= 0]).tolist())]


def census(found: Likelihoods, masks: Sequence[int], counts: Sequence[float] = COUNTS) -> Census:
    """All hypotheses of a few causes that explain the journal, and the patterns of these masks.

    `counts` weighs 0, 1, 2 and 3 causes.
    """
    work = _Census(found, counts)
    inside = (found.candidates.masks[None, :] & ~np.array(masks, dtype=np.uint64)[:, None]) == 0
    held = (inside * (1 << np.arange(len(masks)))[:, None]).sum(axis=0)
    parts = [work.of(size) for size in range(max(1, work.names), MOST + 1)]
    parts = [part for part in parts if len(part[2])]
    if not parts:
        none = np.zeros((0, MOST), dtype=np.int64)
        flat = np.zeros(0, dtype=np.int64)
        return Census(np.zeros(0), flat, none.astype(np.uint64), none, none)
    weight = np.concatenate([weight for _, _, weight in parts])
    place = np.concatenate([_wide(place) for place, _, _ in parts])
    label = np.concatenate([_wide(label) for _, label, _ in parts])
    lacks = place < 0
    return Census(
        weight=weight / weight.sum(),
        pattern=np.bitwise_or.reduce(np.where(lacks, 0, held[place]), axis=1),
        mask=np.where(lacks, NEVER, found.candidates.masks[place]),
        label=label,
        order=np.where(lacks, LAST, 2 * work.rank[label] + (label != found.evidence.first)),
    )


def _wide(rows: Ints) -> Ints:
    return np.pad(rows, ((0, 0), (0, MOST - rows.shape[1])), constant_values=-1)


class _Census:
    def __init__(self, found: Likelihoods, counts: Sequence[float]) -> None:
        self.found = found
        self.counts = counts
        self.cand = found.candidates
        evidence = found.evidence
        self.names, self.stretches = len(evidence.names), len(found.starts)
        prior = self.cand.prior
        # (L, C) of each failure, seen or not: as a cause of its own, and without its prior.
        self.own = np.concatenate([found.priors * found.apart, found.unseen * prior[None, :]])
        self.fits = np.concatenate([found.apart, found.unseen])
        seen = 2 * np.array(evidence.phases, dtype=np.int64)
        self.rank = np.concatenate([seen, 2 * found.starts + 1])
        before = np.concatenate([np.array(evidence.phases, dtype=np.int64), found.starts])
        mass = np.concatenate([[0.0], np.cumsum(phase_mass())])
        self.before = mass[np.maximum(0, before)]
        masks = self.cand.masks
        self.holds = (masks[None, :] & ~masks[:, None]) == 0  # (C, C): the first holds the second
        self.step = self.holds & (self.cand.count[:, None] == self.cand.count[None, :] + 1)
        self.spare = np.maximum(1, (self.cand.more >= 0).sum(axis=1))

    def of(self, size: int) -> tuple[Ints, Ints, Floats]:
        """(R, size) candidates and failures of all hypotheses of so many causes; (R,) weights."""
        sets = _sets(len(self.cand.masks), size)
        kinds = _labels(self.names, self.stretches, size)
        place = np.repeat(sets, len(kinds), axis=0)
        label = np.tile(kinds, (len(sets), 1))
        single = self.own[label, place]
        alive = np.nonzero((single > 0).all(axis=1))[0]
        place, label, single = place[alive], label[alive], single[alive]
        shown = self._shown(place, label)
        keep = np.nonzero(shown)[0]
        place, label, single, shown = place[keep], label[keep], single[keep], shown[keep]
        weight = self._plain(place, label, single) + self._nested(place, label, single)
        return place, label, weight * shown * self.counts[size] / SHOWN[size]

    def _shown(self, place: Ints, label: Ints) -> Floats:
        """(R,) whether every answer has its cause, and every cause a launch that shows it."""
        evidence = self.found.evidence
        chance = np.ones(len(place))
        for row, d in zip(self.found.inside, evidence.failure.tolist(), strict=True):
            if d >= 0:
                chance *= (row[place] & (label == d)).any(axis=1)
        for i, j in permutations(range(place.shape[1]), 2):
            holds = self.holds[place[:, i], place[:, j]]
            mine, other = self.rank[label[:, i]], self.rank[label[:, j]]
            unseen = label[:, i] >= self.names
            hidden = other < mine + (label[:, i] != evidence.first)
            hidden |= (label[:, i] == label[:, j]) & ~unseen
            either = unseen & (label[:, i] == label[:, j])
            chance *= np.where(holds & hidden, np.where(either, EITHER, 0.0), 1.0)
        return chance

    def _plain(self, place: Ints, label: Ints, single: Floats) -> Floats:
        """Causes that have nothing to do with each other, but for a shared failure."""
        size = place.shape[1]
        again = np.zeros(len(place), dtype=np.int64)
        for d in range(self.names):
            again += np.maximum(0, (label == d).sum(axis=1) - 1)
        fresh = size - 1 - again
        # In order, a cause shares the failure of the one before it.
        apart = np.where((again == 1) & (size > again + 1), 2 / size, 1.0)
        weight = single.prod(axis=1) * SAME**again * (1 - SAME) ** fresh * apart * factorial(size)
        if size > 1:
            small = (self.cand.count[place] < MOST).mean(axis=1)
            weight *= 1 - NESTED * small
        return np.asarray(weight, dtype=np.float64)

    def _nested(self, place: Ints, label: Ints, single: Floats) -> Floats:
        """A cause with one flag more than another, in an earlier phase."""
        size = place.shape[1]
        weight = np.zeros(len(place))
        for i, j in permutations(range(size), 2):
            fits = self.step[place[:, j], place[:, i]]
            fits &= self.rank[label[:, j]] < self.rank[label[:, i]]
            if not fits.any():
                continue
            rest = np.prod([single[:, k] for k in range(size) if k not in (i, j)], axis=0)
            value = self.fits[label[:, j], place[:, j]] / np.maximum(1e-3, self.before[label[:, i]])
            value = value * single[:, i] / self.spare[place[:, i]] * NESTED
            weight += np.where(fits, value * rest * (1 - SAME) ** (size - 2), 0.0)
        return weight

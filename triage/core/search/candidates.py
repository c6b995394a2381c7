"""Sets of flags that could be a cause, and how likely each is before any launch.

In:  a Space. Out: Candidates, arrays over all closed sets of up to `size` flags.
Not: what launches say about them (evidence.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from triage.core.search.space import Space

Masks = NDArray[np.uint64]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# How often a cause takes 1, 2 or 3 flags; `Space.large` says it of four.
SIZES = (0.412, 0.443, 0.145, 0.0)
MOST = 20_000  # candidates; where larger sets would pass it they are left out
# A suspicion is right about most of its flags, or wrong about all: so it weighs by its third
# power, beside a share of the even prior that stands for its being wrong; a larger one among
# many flags, where to be misled costs most.
SHARP, DOUBT_BY_FLAG, MOST_DOUBT = 3.0, 0.025, 0.6
PAIR = 2
GENERATORS = len(SIZES) + 1


@dataclass(frozen=True, slots=True, eq=False)
class Trust:
    """(C,) each: the prior if the suspicion is right, and if it is wrong, as it is by `doubt`."""

    right: Floats
    wrong: Floats
    doubt: float

    def mixed(self) -> Floats:
        """(C,) the prior of one cause."""
        return (1 - self.doubt) * self.right + self.doubt * self.wrong

    def together(self, place: Ints) -> Floats:
        """(H,) how much likelier these (H, M) causes are together than one by one; -1 is none.

        A suspicion that was wrong about one cause is so about the others.
        """
        prior = self.mixed()
        right, wrong = (
            np.where(place >= 0, (share / prior)[place], 1.0).prod(axis=1)
            for share in (self.right, self.wrong)
        )
        return np.asarray((1 - self.doubt) * right + self.doubt * wrong)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """C candidates of n bits.

    `masks` (C,): closed sets. `prior` (C,): sums to 1. `trust`: what the prior is mixed of, None
    if no flag is suspected more than others. `count` (C,): flags that make the set, the rest is
    what they need. `hits` (C, GENERATORS): what goes with each of these
    flags when it is dropped; the last one repeats. `more` (C, n): place of the set with
    bit j added, -1 if that is no other candidate.
    """

    masks: Masks
    prior: Floats
    trust: Trust | None
    count: Ints
    hits: Masks
    more: Ints


def most_flags(n: int) -> int:
    """The largest cause that the model of n flags holds."""
    size = len(SIZES)
    while size > PAIR and sum(comb(n, k) for k in range(1, size + 1)) > MOST:
        size -= 1
    return size


@lru_cache(maxsize=16)
def candidates_of(space: Space) -> Candidates:
    """All candidates of the space; sets inside the baseline are none."""
    bits = [j for j in space.bits(space.full) if space.needs[j] & ~space.base]
    extra = [j for j in space.bits(space.full) if j not in bits]
    sets: dict[int, tuple[int, ...]] = {}
    for size in range(1, most_flags(space.n) + 1):
        for chosen in combinations(bits + extra, size):
            mask = 0
            for j in chosen:
                mask |= space.needs[j]
            if mask & ~space.base and mask not in sets and space.lawful(mask):
                sets[mask] = chosen
    masks = list(sets)
    place = {mask: i for i, mask in enumerate(masks)}
    count = np.array([len(chosen) for chosen in sets.values()], dtype=np.int64)
    hits = np.zeros((len(masks), GENERATORS), dtype=np.uint64)
    more = np.full((len(masks), space.n), -1, dtype=np.int64)
    for i, (mask, chosen) in enumerate(sets.items()):
        users = [space.users[j] for j in chosen]
        hits[i] = [*users, *[users[-1]] * (GENERATORS - len(users))]
        if len(chosen) < GENERATORS - 1:
            for j in bits:
                if not mask >> j & 1:
                    more[i, j] = place.get(mask | space.needs[j], -1)
    trust = weigh(count, list(sets.values()), space)
    return Candidates(
        masks=np.array(masks, dtype=np.uint64),
        prior=trust.mixed(),
        trust=trust if len(set(space.suspicion)) > 1 else None,
        count=count,
        hits=hits,
        more=more,
    )


def weigh(count: Ints, sets: list[tuple[int, ...]], space: Space) -> Trust:
    """Shares by size; inside one size by suspicion, or evenly if the suspicion is wrong."""
    factor = np.array([np.prod([space.suspicion[j] ** SHARP for j in chosen]) for chosen in sets])
    shares = [*((1 - space.large) * share for share in SIZES[:-1]), space.large]
    right, wrong = np.zeros(len(sets)), np.zeros(len(sets))
    for size, share in enumerate(shares, start=1):
        own = count == size
        if own.any():
            right[own] = share * factor[own] / factor[own].sum()
            wrong[own] = share / own.sum()
    total = wrong.sum() or 1.0
    doubt = min(MOST_DOUBT, DOUBT_BY_FLAG * space.n)
    return Trust(right / total, wrong / total, doubt)

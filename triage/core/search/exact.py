"""Up to four flags: the launches that reach the goal soonest on average, by looking at all.

In:  a Belief. Out: a mask to launch, or None if the goal is reached.
Not: goals other than best; classes of failures only weigh the hypotheses.

Which of at most 16 configurations fail, if adding a flag never repairs, is one of at most
168 patterns. Each is weighed by the hypotheses, and a little even where none has it, so
that a proof rests on no prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from triage.core.search.belief import SURE, Belief
from triage.core.search.evidence import STARTED
from triage.core.search.space import Space

MOST = 4  # flags
FLOOR = 2e-5  # weight of a pattern that no hypothesis has
CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Plan:
    """The launch, and how many more the goal takes on average."""

    mask: int | None
    launches: float


@lru_cache(maxsize=8)
def patterns(space: Space) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The lawful masks, and every pattern of failures: bit i is set if mask i fails."""
    masks = [m for m in range(1 << space.n) if space.lawful(m)]
    above = [[j for j, b in enumerate(masks) if a & ~b == 0] for a in masks]
    found: set[int] = {0}
    for i in sorted(range(len(masks)), key=lambda i: -masks[i].bit_count()):
        more = set()
        for pattern in found:
            if all(j == i or pattern >> j & 1 for j in above[i]):
                more.add(pattern | 1 << i)
        found |= more
    return tuple(masks), tuple(sorted(found))


def plan(belief: Belief, stop: str, closed: frozenset[int]) -> Plan:
    """The next launch of the best policy; `closed` are masks that cannot be launched."""
    space, h = belief.space, belief.hypotheses
    masks, every = patterns(space)
    place = {mask: i for i, mask in enumerate(masks)}
    ok = bad = 0
    for mask, failure in zip(
        belief.evidence.masks.tolist(), belief.evidence.failure.tolist(), strict=True
    ):
        if failure == STARTED:
            ok |= 1 << place[mask]
        else:
            bad |= 1 << place[mask]
    left = [p for p in every if p & bad == bad and not p & ok]
    weight = dict.fromkeys(left, FLOOR)
    fails = h.fails(np.array(masks, dtype=np.uint64))
    for row, w in enumerate(h.weight.tolist()):
        pattern = sum(1 << i for i in np.nonzero(fails[:, row])[0].tolist())
        if pattern in weight:
            weight[pattern] += w
    work = _Policy(
        [space.value(m) for m in masks],
        left,
        [weight[p] for p in left],
        {place[m] for m in closed if m in place},
        SURE if stop != "proved" else 1.0,
    )
    done = max((work.worth[i] for i in range(len(masks)) if ok >> i & 1), default=-np.inf)
    whole = (1 << len(left)) - 1
    cost, pick = work.solve(whole, done)
    mass = work.mass(whole)
    return Plan(None if pick is None else masks[pick], cost / mass if mass else 0.0)


class _Policy:
    """Least expected launches, by the set of patterns that are left and the best that started."""

    def __init__(
        self,
        worth: list[float],
        left: list[int],
        weight: list[float],
        closed: set[int],
        sure: float,
    ) -> None:
        self.worth = worth
        self.weight = weight
        self.closed = closed
        self.sure = sure
        self.failing = [
            sum(1 << k for k, p in enumerate(left) if p >> i & 1) for i in range(len(worth))
        ]
        self.memo: dict[tuple[int, float], tuple[float, int | None]] = {}
        self.masses: dict[int, float] = {}

    def mass(self, state: int) -> float:
        """The weight of a set of patterns."""
        found = self.masses.get(state)
        if found is None:
            found, rest = 0.0, state
            while rest:
                low = rest & -rest
                found += self.weight[low.bit_length() - 1]
                rest ^= low
            self.masses[state] = found
        return found

    def _reached(self, state: int, done: float) -> bool:
        better = 0
        for i, worth in enumerate(self.worth):
            if worth > done + CLOSE and i not in self.closed:
                better |= state & ~self.failing[i]
        if not better:
            return True
        return self.sure < 1.0 and self.mass(better) <= (1 - self.sure) * self.mass(state)

    def solve(self, state: int, done: float) -> tuple[float, int | None]:
        """Expected launches times the weight of the state, and the first of them."""
        key = (state, done)
        if key in self.memo:
            return self.memo[key]
        found: tuple[float, int | None] = (0.0, None)
        if not self._reached(state, done):
            mass = self.mass(state)
            found = (float("inf"), None)
            for i, worth in enumerate(self.worth):
                bad = state & self.failing[i]
                good = state & ~self.failing[i]
                if i in self.closed or not good:
                    continue
                if not bad and worth <= done + CLOSE:
                    continue
                cost = mass
                if cost >= found[0]:
                    break
                cost += self.solve(good, max(done, worth))[0]
                if bad and cost < found[0]:
                    cost += self.solve(bad, done)[0]
                if cost < found[0] - 1e-12:
                    found = (cost, i)
        self.memo[key] = found
        return found

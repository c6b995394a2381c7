"""Up to four flags: the launches that reach the goal soonest on average, by looking at all.

In:  a Belief. Out: a mask to launch, or None if the goal is reached.
Not: the goal all.

Which of at most 16 configurations fail, if adding a flag never repairs, is one of at most
168 patterns. Each is weighed by all causes that explain the journal (census.py), and a
little even where none do, so that a proof rests on no prior. What launches fail of is not
looked ahead to, but where two are nearly as good: there it tips the scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from triage.core.search.belief import SURE, Belief
from triage.core.search.census import COUNTS, Census, census
from triage.core.search.evidence import STARTED
from triage.core.search.space import Space

MOST = 4  # flags
FLOOR = 2e-5  # weight of a pattern that no hypothesis has
NEAR = 0.05  # launches so much dearer are looked at once more, with what failures tell
CLOSE = 1e-9
# Of so many causes, for the goal first: one cause is the number for which leaving out each flag in
# turn is hard to beat, and where there are more, less weight for them is enough.
FIRST = (0.0, 0.86, 0.04, 0.1)


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


def plan(belief: Belief, goal: str, stop: str, closed: frozenset[int]) -> Plan | None:
    """The next launch of the best policy for goal best or first.

    `closed` are masks that cannot be launched; None if without them `first` is not reached.
    """
    space = belief.space
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
    every_cause = census(belief.likelihoods, masks, FIRST if goal == "first" else COUNTS)
    lost = {place[m] for m in closed if m in place}
    sure = SURE if stop != "proved" else 1.0
    game = Game([space.value(m) for m in masks], left, lost, sure)
    if goal == "first":
        game = Smallest(masks, left, lost, sure)
    work = Policy(game, _weights(left, every_cause.shares()))
    done = max((game.worth[i] for i in range(len(masks)) if ok >> i & 1), default=-np.inf)
    done = 0.0 if goal == "first" else done
    whole = (1 << len(left)) - 1
    cost, pick = work.solve(whole, done)
    if pick is None:
        return None if cost else Plan(None, 0.0)
    mass = work.mass(whole)
    near = [i for i in work.moves(whole, done) if work.within(whole, done, i, cost + NEAR * mass)]
    if len(near) > 1:
        told = {i: _told(work, every_cause, masks[i], i, done) for i in near}
        pick = min(near, key=lambda i: (told[i], i != pick, i))
        cost = told[pick]
    return Plan(masks[pick], cost / mass)


def _weights(left: list[int], shares: dict[int, float], floor: float = FLOOR) -> list[float]:
    return [floor + shares.get(p, 0.0) for p in left]


def _told(work: Policy, every_cause: Census, mask: int, i: int, done: float) -> float:
    """Expected launches times the weight, if what is launched next may depend on the failure."""
    game = work.game
    whole = (1 << len(game.left)) - 1
    good, bad = whole & ~game.failing[i], whole & game.failing[i]
    cost = work.mass(whole) + work.solve(good, max(done, game.worth[i]))[0]
    failures = every_cause.answers(mask)[1:]
    fails = sum(float(every_cause.weight[rows].sum()) for rows in failures)
    if not fails:
        return cost + work.solve(bad, done)[0]
    for rows in failures:
        share = float(every_cause.weight[rows].sum()) / fails
        weights = _weights(game.left, every_cause.shares(rows), FLOOR * share)
        cost += Policy(game, weights).solve(bad, done)[0]
    return cost


class Game:
    """What is played for: the worth of each mask, the patterns that are left, when to stop."""

    def __init__(self, worth: list[float], left: list[int], closed: set[int], sure: float) -> None:
        self.worth = worth
        self.left = left
        self.closed = closed
        self.sure = sure
        self.failing = [
            sum(1 << k for k, p in enumerate(left) if p >> i & 1) for i in range(len(worth))
        ]
        self.opens: dict[float, int] = {}

    def open(self, done: float) -> int:
        """The patterns in which something worth more starts."""
        found = self.opens.get(done)
        if found is None:
            found, whole = 0, (1 << len(self.left)) - 1
            for i, worth in enumerate(self.worth):
                if worth > done + CLOSE and i not in self.closed:
                    found |= whole & ~self.failing[i]
            self.opens[done] = found
        return found

    def reached(self, state: int, done: float, mass: Callable[[int], float]) -> bool:
        """Whether nothing better starts in these patterns, or hardly anything."""
        better = state & self.open(done)
        if not better:
            return True
        return self.sure < 1.0 and mass(better) <= (1 - self.sure) * mass(state)

    def helps(self, _state: int, _i: int) -> bool:
        """Whether the i-th mask is looked at."""
        return True


class Smallest(Game):
    """Played for one failing set that starts with any flag less; worth is nothing here."""

    def __init__(
        self, masks: Sequence[int], left: list[int], closed: set[int], sure: float
    ) -> None:
        super().__init__([0.0] * len(masks), left, closed, sure)
        whole = (1 << len(left)) - 1
        self.masks = masks
        self.inside: dict[int, set[int]] = {}
        self.smallest = []  # of each mask, the patterns in which it is a smallest failing one
        for i, mask in enumerate(masks):
            found = self.failing[i]
            for j, less in enumerate(masks):
                if less != mask and less & ~mask == 0:
                    found &= whole & ~self.failing[j]
            self.smallest.append(found)

    def reached(self, state: int, done: float, mass: Callable[[int], float]) -> bool:
        """Whether some set fails in all these patterns, and nothing smaller does."""
        for i, found in enumerate(self.smallest):
            if state & ~found == 0:
                return True
            shown = not state & ~self.failing[i]
            few = mass(state & ~found) <= (1 - self.sure) * mass(state)
            if self.sure < 1.0 and shown and few:
                return True
        return False

    def helps(self, state: int, i: int) -> bool:
        """Only what lies inside a smallest set that is known to fail is looked at."""
        found = self.inside.get(state)
        if found is None:
            fails = zip(self.masks, self.failing, strict=True)
            bad = [m for m, patterns in fails if not state & ~patterns]
            low = [m for m in bad if not any(o != m and o & ~m == 0 for o in bad)]
            found = self.inside[state] = {
                k for k, m in enumerate(self.masks) if not low or any(m & ~o == 0 for o in low)
            }
        return i in found


class Policy:
    """Least expected launches, by the set of patterns that are left and the best that started.

    A launch tells here that it starts or fails, not of what.
    """

    def __init__(self, game: Game, weight: list[float]) -> None:
        self.game = game
        self.worth = game.worth
        self.weight = weight
        self.closed = game.closed
        self.failing = game.failing
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
        return self.game.reached(state, done, self.mass)

    def moves(self, state: int, done: float) -> list[int]:
        """Launches that may tell something."""
        return [
            i
            for i, worth in enumerate(self.worth)
            if i not in self.closed
            and self.game.helps(state, i)
            and state & ~self.failing[i]
            and (state & self.failing[i] or worth > done + CLOSE)
        ]

    def within(self, state: int, done: float, i: int, limit: float) -> bool:
        """Whether the goal is reached within so much, if this is the first launch."""
        cost = self.mass(state)
        good = (state & ~self.failing[i], max(done, self.worth[i]))
        bad = (state & self.failing[i], done)
        parts = [part for part in (good, bad) if not self._reached(*part)]
        parts.sort(key=lambda part: part[0].bit_count())
        least = sum(self.mass(rows) for rows, _ in parts)
        for rows, had in parts:
            if cost + least > limit:
                return False
            cost += self.solve(rows, had)[0]
            least -= self.mass(rows)
        return cost <= limit

    def solve(self, state: int, done: float) -> tuple[float, int | None]:
        """Expected launches times the weight of the state, and the first of them."""
        key = (state, done)
        if key in self.memo:
            return self.memo[key]
        found: tuple[float, int | None] = (0.0, None)
        if not self._reached(state, done):
            mass = self.mass(state)
            found = (float("inf"), None)
            tries = []
            for i in self.moves(state, done):
                bad, good = state & self.failing[i], state & ~self.failing[i]
                then = max(done, self.worth[i])
                least = mass
                if not self._reached(good, then):
                    least += self.mass(good)
                if bad and not self._reached(bad, done):
                    least += self.mass(bad)
                tries.append((least, i, bad, good, then))
            for least, i, bad, good, then in sorted(tries):
                if least >= found[0] - 1e-12:
                    break
                cost = mass + self.solve(good, then)[0]
                if bad and cost < found[0]:
                    cost += self.solve(bad, done)[0]
                if cost < found[0] - 1e-12:
                    found = (cost, i)
        self.memo[key] = found
        return found

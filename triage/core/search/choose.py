"""Which launch tells most about the decision that is to be made.

In:  Hypotheses, the region of each, masks to start from. Out: the probe and its worth.
Not: when the search ends (goals.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from triage.core.search.actions import CLOSE, Worth
from triage.core.search.candidates import Floats, Ints, Masks
from triage.core.search.joint import NEVER, Hypotheses
from triage.core.search.space import Space

WHOLE = 0.15  # of a bit about the whole truth, against one about the decision
BITS = 1.15  # bits about the decision that a launch brings, as a rule
UNTOLD = 1 / 12  # needs of a flag that nobody told, on average
REPEATED = 0.7  # of what a launch tells that was made before, where launches may lie
TRIES = 90  # random probes
BEAM, ROUNDS = 4, 2


@dataclass(frozen=True, slots=True, eq=False)
class Bonus:
    """What a probe may bring beside bits: a launch saved where `mask` shows `outcome`.

    `gain` (H,) launches saved, by hypothesis; `starts` True: it has to start, else to fail.
    """

    mask: int
    gain: Floats


@dataclass(frozen=True, slots=True)
class Probe:
    """A launch, its score in launches saved, and the bits that it brings about the decision."""

    mask: int
    score: float
    bits: float


@dataclass(frozen=True, slots=True, eq=False)
class Aim:
    """What ends a search for the best configuration.

    `best` (H,) worth of the best under each hypothesis; `had` that of the best that started;
    `doubt` how likely something better may be at the end.
    """

    best: Floats
    had: float
    doubt: float
    worth: Worth


class Chooser:
    """Scores probes against one set of hypotheses.

    `whole`: what a bit about the whole truth is worth beside one about the decision.
    """

    def __init__(
        self,
        h: Hypotheses,
        region: Ints,
        bonus: Sequence[Bonus] = (),
        asked: frozenset[int] = frozenset(),
        again: frozenset[int] = frozenset(),
        *,
        aim: Aim | None = None,
        whole: float = WHOLE,
    ) -> None:
        self.h = h
        self.space: Space = h.evidence.space
        self.regions = int(region.max()) + 1
        self.region = region
        self.bonus = {b.mask: b.gain for b in bonus}
        self.asked = asked
        self.again = again
        self.aim = aim
        self.whole = whole
        self.needy = _unknown_needs(h)
        self.base = _entropy(_sums(region, h.weight, 0)[None])[0]

    def scores(self, masks: Sequence[int]) -> Floats:
        """(P,) launches that each probe saves."""
        probes = np.array(masks, dtype=np.uint64)
        flat, starts, kinds = self._answers(probes)
        if self.aim is None:
            score = self._bits(flat, kinds) / BITS
        else:
            score = self._saved(self.aim, probes, flat, starts, kinds)
        cells = (np.arange(len(probes))[:, None] * kinds + flat).ravel()
        share = _sums(cells, self._weights(flat), len(probes) * kinds).reshape(-1, kinds)
        score += self.whole * min(1.0, self.base) * _entropy(share)
        for i, mask in enumerate(masks):
            gain = self.bonus.get(mask)
            if gain is not None:
                score[i] += float((gain * self.h.weight).sum())
            if mask in self.again:
                score[i] *= REPEATED
        return score * (1 - self._rejected(probes))

    def bits(self, mask: int) -> float:
        """How much a launch tells about the decision."""
        flat, _, kinds = self._answers(np.array([mask], dtype=np.uint64))
        return float(self._bits(flat, kinds)[0])

    def _answers(self, probes: Masks) -> tuple[Ints, np.ndarray, int]:
        """(P, H) each answer as a small number, whether it is a start, how many there are."""
        codes = self.h.outcomes(probes)
        present = np.bincount(codes.ravel()) > 0
        number = np.cumsum(present) - 1
        return np.asarray(number[codes], dtype=np.int64), codes == 0, int(present.sum())

    def _weights(self, flat: Ints) -> Floats:
        return np.broadcast_to(self.h.weight, flat.shape).ravel()

    def _split(self, flat: Ints, label: Ints, kinds: int, labels: int) -> Floats:
        """(P, kinds, labels) how much weight each answer leaves on each label."""
        rows = np.arange(len(flat))[:, None] * kinds
        cells = ((rows + flat) * labels + label).ravel()
        table = _sums(cells, self._weights(flat), len(flat) * kinds * labels)
        return table.reshape(len(flat), kinds, labels)

    def _bits(self, flat: Ints, kinds: int) -> Floats:
        table = self._split(flat, self.region[None], kinds, self.regions)
        return np.asarray(self.base - _left(table).sum(axis=1))

    def _saved(self, aim: Aim, probes: Masks, flat: Ints, starts: np.ndarray, kinds: int) -> Floats:
        """(P,) launches saved: what is left to do now, less what is after each answer.

        Nothing is left once hardly anything can be better than the best that started; else
        what `_to_do` expects.
        """
        done = np.maximum(aim.had, aim.worth.of(probes))
        best = np.where(starts, done[:, None], aim.had)
        label = np.where(aim.best[None] > best + CLOSE, self.region[None], self.regions)
        table = self._split(flat, label, kinds, self.regions + 1)
        mass = table.sum(axis=2)
        better = mass - table[:, :, -1]
        open_ = _left(table) / np.maximum(mass, CLOSE)
        after = np.where(better <= aim.doubt * mass, 0.0, mass * _to_do(open_))
        return np.asarray(_to_do(np.asarray(self.base)) - after.sum(axis=1))

    def _rejected(self, probes: Masks) -> Floats:
        """(P,) how likely the engine turns the launch down, for want of a flag that it lacks."""
        has = (probes[:, None] >> np.arange(self.space.n, dtype=np.uint64) & np.uint64(1)) > 0
        pairs = ((has.astype(np.float64) @ self.needy) * ~has).sum(axis=1)
        return np.asarray(1 - np.exp(-pairs))

    def best(self, pool: Iterable[int]) -> Probe | None:
        """The best probe of the pool or near it; None if there is none to launch."""
        seen: dict[int, float] = {}
        fresh = [m for m in dict.fromkeys(pool) if self._may(m)]
        for _ in range(ROUNDS + 1):
            if not fresh:
                break
            seen.update(zip(fresh, self.scores(fresh).tolist(), strict=True))
            top = sorted(seen, key=lambda m: (-seen[m], m))[:BEAM]
            near = {self._flipped(m, j) for m in top for j in self.space.bits(self.space.full)}
            fresh = [m for m in sorted(near) if m not in seen and self._may(m)]
        if not seen:
            return None
        mask = min(seen, key=lambda m: (-round(seen[m], 9), m))
        return Probe(mask, seen[mask], self.bits(mask))

    def _may(self, mask: int) -> bool:
        return mask not in self.asked and self.space.lawful(mask)

    def _flipped(self, mask: int, j: int) -> int:
        if mask >> j & 1:
            return self.space.without(mask, 1 << j)
        return self.space.trimmed(mask | self.space.needs[j])


def _unknown_needs(h: Hypotheses) -> Floats:
    """(n, n) how likely a needs b without our knowing; what was accepted disproves it."""
    space, evidence = h.evidence.space, h.evidence
    n = space.n
    likely = np.full((n, n), UNTOLD / max(1, n - 1))
    places = np.arange(n, dtype=np.uint64)
    has = (evidence.masks[:, None] >> places & np.uint64(1)) > 0
    for row in has:
        likely[np.ix_(row, ~row)] = 0.0
    for j in range(n):
        likely[j, space.bits(space.needs[j])] = 0.0
        if space.repairs >> j & 1:
            likely[j] = likely[:, j] = 0.0
    return likely


def _sums(label: Ints, weight: Floats, least: int) -> Floats:
    """The weight of each label, from 0."""
    return np.asarray(np.bincount(label, weights=weight, minlength=least), dtype=np.float64)


def _to_do(bits: Floats) -> Floats:
    """Launches until the best configuration is confirmed, if so many bits of it are open.

    The more is open, the less one bit says: drawn hypotheses do not show all there are.
    """
    return np.asarray(1 + 0.8 * bits + 0.1 * bits**2)


def _left(table: Floats) -> Floats:
    """(P, kinds) weight of each answer times the bits that are open after it."""
    return np.asarray(_plogp(table.sum(axis=2)) - _plogp(table).sum(axis=2))


def _plogp(table: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(table > 0, table * np.log2(table), 0.0))


def _entropy(table: Floats) -> Floats:
    return np.asarray(-_plogp(table).sum(axis=1))


def pool(h: Hypotheses, actions: Masks, luck: np.random.Generator) -> list[int]:
    """Probes worth scoring: what is best or bad in some hypothesis, its opposite, and random ones.

    Unions of the likeliest causes fail, so they tell which; all but their flags starts.
    """
    space = h.evidence.space
    full = space.full
    found: list[int] = [int(a) for a in actions[:24]]
    order = np.argsort(-h.weight, kind="stable")[:24]
    causes: dict[int, float] = {}
    for row, weight in zip(h.mask.tolist(), h.weight.tolist(), strict=True):
        for mask in row:
            if mask != int(NEVER):
                causes[mask] = causes.get(mask, 0.0) + weight
    likely = sorted(causes, key=lambda m: (-causes[m], m))[:40]
    found += likely
    union = 0
    for mask in likely[:16]:
        union |= mask
        found.append(union)
        found.append(space.without(full, mask))
    for i in order:
        held = 0
        for mask in h.mask[i].tolist():
            held |= mask if mask != int(NEVER) else 0
        found += [held, space.without(full, held)]
    share = np.zeros(space.n)
    for mask, weight in causes.items():
        for j in space.bits(mask):
            share[j] += weight
    ranked = [j for j in np.argsort(-share, kind="stable").tolist() if full >> j & 1]
    prefix = 0
    for j in ranked:
        prefix |= space.needs[j]
        found += [prefix, space.without(full, prefix)]
    cheap = sorted(space.bits(full), key=lambda j: space.worth[j])
    gone = 0
    for j in cheap:
        gone |= 1 << j
        found.append(space.without(full, gone))
    density = luck.random((TRIES, 1))
    rolls = luck.random((TRIES, space.n)) < density
    for roll in rolls:
        found.append(sum(1 << j for j in range(space.n) if roll[j]))
    return [space.trimmed(mask) for mask in found]

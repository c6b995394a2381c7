"""What may be true as a whole: joint hypotheses of all causes, drawn from the posterior.

In:  Likelihoods. Out: Hypotheses, merged and weighted; equal journals give equal ones.
Not: what to do about them (choose.py).

A hypothesis is 1 to 4 causes. Given the phases that were seen, the failures are
independent of each other but for four ties: how many causes there are, that a cause may
be nested in another (the same flags and one more, in an earlier phase), and that a cause
which no launch could show is none. The first two are weighed as components, the third
rejects draws. A fourth weighs what was drawn: a suspicion is right of all or of none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import factorial

import numpy as np

from triage.core.search.candidates import Floats, Ints, Masks
from triage.core.search.evidence import Evidence
from triage.core.search.likelihood import PAIRS, Likelihoods, phase_mass

COUNTS = (0.0, 0.37, 0.34, 0.25, 0.04)  # how many causes there are, before any launch
BEYOND = 0.25  # each further one
NESTED, SAME = 0.20, 0.15  # a second cause is nested in the first; shares its failure
MACHINE = 0.3  # a failure that the machine brings has a cause among the flags as well
SECOND_MACHINE = 0.1  # two failures are the machine's, against one
RARE = 1e-5  # components below this share of the likeliest are left out
DRAWS = 1600
THREE, TRIPLES = 3, 90  # causes of one failure; patterns that are weighed in threes
PATTERN = 60  # launches of a failure that a pattern tells
NEVER = np.uint64(1 << 63)  # in a mask: no launch holds it
UNSEEN = -1


@dataclass(frozen=True, slots=True, eq=False)
class Hypotheses:
    """H hypotheses of at most M causes.

    `weight` (H,) sums to 1. `mask` (H, M) holds NEVER where there is no cause, `place`
    (H, M) the candidate, `phase` (H, M) doubled places in a startup (odd: between two),
    `failure` (H, M) the failure's place in the evidence or UNSEEN.
    """

    evidence: Evidence
    weight: Floats
    mask: Masks
    place: Ints
    phase: Ints
    failure: Ints

    def __len__(self) -> int:
        return len(self.weight)

    def unless(self) -> Masks | None:
        """(H, M) what repairs each cause; None if nothing is known to repair any."""
        known = self.evidence.unless
        if not any(known):
            return None
        found = np.array(known, dtype=np.uint64)[self.failure]
        return np.asarray(np.where(self.failure >= 0, found, 0), dtype=np.uint64)

    def strikes(self, probes: Masks) -> np.ndarray:
        """(P, H, M): the cause is inside the probe, and nothing in it repairs it."""
        inside = (self.mask[None] & ~probes[:, None, None]) == 0
        repaired = self.unless()
        if repaired is not None:
            inside &= (repaired[None] & probes[:, None, None]) == 0
        return np.asarray(inside)

    def fails(self, probes: Masks) -> np.ndarray:
        """(P, H): the probe dies of some cause."""
        return np.asarray(self.strikes(probes).any(axis=2))

    def outcomes(self, probes: Masks) -> Ints:
        """(P, H): 0 the probe starts, 1 + d it shows failure d, above: an unseen one, by phase."""
        return _outcomes(self, probes)


@dataclass(frozen=True, slots=True)
class _Part:
    """One component: of each failure how many causes, how many unseen, which nesting."""

    counts: tuple[int, ...]
    mixed: tuple[bool, ...]  # the machine brings this failure as well
    unseen: int
    nest: tuple[str, int, int] | None  # (both | inner | outer, base's failure, nested one's)
    weight: float


class _Draw:
    """The work of one posterior; see `hypotheses`."""

    def __init__(self, found: Likelihoods) -> None:
        self.found = found
        self.evidence = found.evidence
        self.cand = found.candidates
        self.names = len(found.evidence.names)
        self.single = found.priors * found.own
        self.one = self.single.sum(axis=1)
        self.also = found.priors * found.mixed
        stray, shown = found.shows
        self.pairs = {(d, False): self._pairs(d, stray, shown) for d in range(self.names)}
        if self.evidence.noise.transient:
            self.pairs |= {
                (d, True): self._pairs(d, found.machine, shown) for d in range(self.names)
            }
        self.triples = {}
        if not self.evidence.noise:
            self.triples = {d: self._triples(d) for d in range(self.names)}
        self.hidden = found.unseen * self.cand.prior[None, :]
        self.rest = float(self.hidden.sum())
        self.nests: dict[tuple[str, int, int], tuple[Floats, float]] = {}
        digest = (
            int(np.bitwise_xor.reduce(found.evidence.masks)) if len(found.evidence.masks) else 0
        )
        self.luck = np.random.default_rng([digest & 0xFFFFFFFF, len(found.evidence.masks)])

    # --- two causes of one failure -------------------------------------------------------------

    def _pairs(self, d: int, stray: float, shown: float) -> tuple[Ints, Floats, float]:
        """Patterns of the failure's launches, the weight of each pair of them, and the sum."""
        weight = self.found.priors[d] * self.found.apart[d]
        alive = weight > 0
        patterns, back = np.unique(self.found.pattern[d][alive], return_inverse=True)
        if not len(patterns):
            return patterns, np.zeros((0, 0)), 0.0
        mass = np.asarray(np.bincount(back, weights=weight[alive], minlength=len(patterns)))
        if len(patterns) > PAIRS:
            most = np.argsort(-mass * np.bitwise_count(patterns.astype(np.uint64)), kind="stable")
            most = most[:PAIRS]
            patterns, mass = patterns[most], mass[most]
        both = patterns[:, None] | patterns[None, :]
        held = np.bitwise_count(both.astype(np.uint64)).astype(np.float64)
        launches = int((self.evidence.failure == d).sum())
        with np.errstate(divide="ignore"):
            fit = np.power(shown, held) * np.power(stray, np.maximum(0, launches - held))
        table = fit * mass[:, None] * mass[None, :] / 2
        return patterns, table, float(table.sum())

    def _draw_pairs(self, d: int, size: int, *, machine: bool) -> Ints:
        patterns, table, _ = self.pairs[d, machine]
        cells = self._pick(table.ravel(), size)
        sides = np.stack(np.divmod(cells, len(patterns)), axis=1)
        weight = self.found.priors[d] * self.found.apart[d]
        drawn = np.empty((size, 2), dtype=np.int64)
        for side in (0, 1):
            for p in np.unique(sides[:, side]):
                rows = sides[:, side] == p
                own = np.where(self.found.pattern[d] == patterns[p], weight, 0.0)
                drawn[rows, side] = self._pick(own, int(rows.sum()))
        return drawn

    # --- three causes of one failure -----------------------------------------------------------

    def _triples(self, d: int) -> tuple[Ints, Ints, Floats, float]:
        """Patterns, (T, 3) places of those that make up the failure's launches, weights, sum."""
        weight = self.found.priors[d] * self.found.apart[d]
        alive = weight > 0
        none = np.zeros((0, 3), dtype=np.int64)
        patterns, back = np.unique(self.found.pattern[d][alive], return_inverse=True)
        launches = min(PATTERN, int((self.evidence.failure == d).sum()))
        if launches < THREE or len(patterns) < THREE:
            return patterns, none, np.zeros(0), 0.0
        mass = np.asarray(np.bincount(back, weights=weight[alive], minlength=len(patterns)))
        most = np.argsort(-mass * np.bitwise_count(patterns.astype(np.uint64)), kind="stable")
        patterns, mass = patterns[most[:TRIPLES]], mass[most[:TRIPLES]]
        lacks = ((1 << launches) - 1) & ~(patterns[:, None] | patterns[None, :])
        whole = np.argwhere((lacks[:, :, None] & ~patterns[None, None, :]) == 0)
        fit = mass[whole].prod(axis=1) / 6 * self.found.shows[1] ** launches
        return patterns, whole, np.asarray(fit, dtype=np.float64), float(fit.sum())

    def _draw_triples(self, d: int, size: int) -> Ints:
        patterns, whole, fit, _ = self.triples[d]
        sides = patterns[whole[self._pick(fit, size)]]
        weight = self.found.priors[d] * self.found.apart[d]
        drawn = np.empty((size, 3), dtype=np.int64)
        for side in range(3):
            for p in np.unique(sides[:, side]):
                rows = sides[:, side] == p
                own = np.where(self.found.pattern[d] == p, weight, 0.0)
                drawn[rows, side] = self._pick(own, int(rows.sum()))
        return drawn

    # --- nesting -------------------------------------------------------------------------------

    def _nest(self, kind: str, base: int, nested: int) -> tuple[Floats, float]:
        """(C, n) weight of each base and the bit that the nested cause has more; and the sum."""
        key = (kind, base, nested)
        if key not in self.nests:
            more = self.cand.more
            spare = np.maximum(1, (more >= 0).sum(axis=1))[:, None]
            first = self._base_weight(kind, base, nested)
            second = self._nested_weight(kind, base, nested)
            rows = np.nonzero(first)[0]
            table = np.zeros(more.shape)
            step = more[rows]
            table[rows] = np.where(step >= 0, second[step], 0.0) * (first[rows, None] / spare[rows])
            self.nests[key] = (table, float(table.sum()))
        return self.nests[key]

    def _base_weight(self, kind: str, base: int, nested: int) -> Floats:
        if kind != "outer":
            return np.asarray(self.single[base])
        later = self.found.starts > self.evidence.phases[nested]
        later |= self.found.starts == self.evidence.phases[nested]
        return np.asarray(self.hidden[later].sum(axis=0))

    def _nested_weight(self, kind: str, base: int, nested: int) -> Floats:
        if kind != "inner":
            return np.asarray(self.found.own[nested])
        earlier = self.found.starts < self.evidence.phases[base]
        share = self.found.unseen[earlier].sum(axis=0)
        return np.asarray(share / max(1e-9, _share_before(self.found, base)))

    # --- components ----------------------------------------------------------------------------

    def parts(self) -> list[_Part]:
        """Every component with a weight above nothing."""
        found: list[_Part] = []
        for counts, mixed, weight in self._counts():
            struck = {self.evidence.names[d] for d, machine in enumerate(mixed) if machine}
            fewer = SECOND_MACHINE ** max(0, len(struck) - 1)
            for unseen in (0, 1, 2):
                found += self._with(counts, mixed, weight * fewer, unseen)
        total = sum(part.weight for part in found)
        return [part for part in found if part.weight > 1e-4 * total]

    def _counts(self) -> list[tuple[tuple[int, ...], tuple[bool, ...], float]]:
        """How many causes each failure may have, whether the machine brings it, and the weight."""
        found: list[tuple[tuple[int, ...], tuple[bool, ...], float]] = [((), (), 1.0)]
        for d in range(self.names):
            own = [(1, False, float(self.one[d])), (2, False, SAME * self.pairs[d, False][2])]
            if d in self.triples:
                own.append((3, False, SAME**2 * self.triples[d][3]))
            if self.evidence.noise.transient:
                own.append((0, True, (1 - MACHINE) * float(self.found.transient[d])))
                own.append((1, True, MACHINE * float(self.also[d].sum())))
                own.append((2, True, MACHINE * SAME * self.pairs[d, True][2]))
            found = [
                ((*counts, k), (*mixed, machine), weight * share)
                for counts, mixed, weight in found
                for k, machine, share in own
                if share > 0
            ]
            least = RARE * max((weight for _, _, weight in found), default=0.0)
            found = [one for one in found if one[2] > least]
        return found

    def _with(
        self, counts: tuple[int, ...], mixed: tuple[bool, ...], weight: float, unseen: int
    ) -> Iterator[_Part]:
        m = sum(counts) + unseen
        if m == 0:
            return
        prior = COUNTS[m] if m < len(COUNTS) else COUNTS[-1] * BEYOND ** (m - len(COUNTS) + 1)
        prior *= (1 - SAME) ** (sum(k > 0 for k in counts) + unseen - 1)
        plain = prior * weight * self.rest**unseen
        chance = 1 - NESTED if m > 1 else 1.0
        if plain > 0:
            yield _Part(
                counts, mixed, unseen, None, plain * chance * factorial(m) / factorial(unseen)
            )
        if m == 1:
            return
        ways = factorial(m - 2) * NESTED
        lone = [d for d, k in enumerate(counts) if k == 1 and not mixed[d]]
        for base in lone:
            for nested in lone:
                if self.evidence.phases[nested] < self.evidence.phases[base]:
                    factor = self._nest("both", base, nested)[1]
                    factor /= self.one[base] * self.one[nested] or np.inf
                    value = plain * factor * ways / factorial(unseen)
                    if value > 0:
                        yield _Part(counts, mixed, unseen, ("both", base, nested), value)
            if unseen:
                for kind in ("inner", "outer"):
                    factor = self._nest(kind, base, base)[1] / (self.one[base] or np.inf)
                    less = prior * weight * self.rest ** (unseen - 1)
                    value = less * factor * ways / factorial(unseen - 1)
                    if value > 0:
                        yield _Part(counts, mixed, unseen, (kind, base, base), value)

    # --- draws ---------------------------------------------------------------------------------

    def _pick(self, weight: Floats, size: int) -> Ints:
        """`size` places drawn by weight, spread evenly over it and in random order."""
        total = np.cumsum(weight)
        at = (np.arange(size) + self.luck.random(size)) / max(1, size) * total[-1]
        drawn = np.minimum(np.searchsorted(total, at, side="right"), len(weight) - 1)
        self.luck.shuffle(drawn)
        return np.asarray(drawn, dtype=np.int64)

    def fill(self, part: _Part, size: int) -> tuple[Ints, Ints, Ints]:
        """(size, m) candidates, doubled phases and failures of one component."""
        places: list[Ints] = []
        phases: list[Ints] = []
        failures: list[Ints] = []

        def add(place: Ints, phase: Ints | int, failure: int) -> None:
            places.append(place)
            phases.append(np.broadcast_to(phase, (size,)).astype(np.int64))
            failures.append(np.full(size, failure, dtype=np.int64))

        done: set[int] = set()
        unseen = part.unseen
        if part.nest:
            kind, base, nested = part.nest
            cells = self._pick(self._nest(kind, base, nested)[0].ravel(), size)
            inner, bit = np.divmod(cells, self.cand.more.shape[1])
            outer = self.cand.more[inner, bit]
            if kind == "outer":
                add(inner, self._later(inner, nested), UNSEEN)
            else:
                add(inner, 2 * self.evidence.phases[base], base)
                done.add(base)
            if kind == "inner":
                add(outer, self._earlier(outer, base), UNSEEN)
            else:
                add(outer, 2 * self.evidence.phases[nested], nested)
                done.add(nested)
            unseen -= kind != "both"
        for d, count in enumerate(part.counts):
            if d in done or not count:
                continue
            phase = 2 * self.evidence.phases[d]
            if count == 1:
                weight = self.also[d] if part.mixed[d] else self.single[d]
                add(self._pick(weight, size), phase, d)
            elif count == THREE:
                three = self._draw_triples(d, size)
                for side in range(3):
                    add(three[:, side], phase, d)
            else:
                two = self._draw_pairs(d, size, machine=part.mixed[d])
                add(two[:, 0], phase, d)
                add(two[:, 1], phase, d)
        for _ in range(unseen):
            stretch, place = np.divmod(self._pick(self.hidden.ravel(), size), len(self.cand.masks))
            add(place, 2 * self.found.starts[stretch] + 1, UNSEEN)
        return np.stack(places, 1), np.stack(phases, 1), np.stack(failures, 1)

    def _later(self, place: Ints, nested: int) -> Ints:
        del place
        return np.asarray(2 * self.evidence.phases[nested] + 1)

    def _earlier(self, place: Ints, base: int) -> Ints:
        del place
        before = self.found.starts[self.found.starts < self.evidence.phases[base]]
        return np.asarray(2 * before[-1] + 1)


def _share_before(found: Likelihoods, base: int) -> float:
    """Prior that a cause's phase lies before that of the failure."""
    return float(phase_mass()[: max(0, found.evidence.phases[base])].sum())


def hypotheses(found: Likelihoods, draws: int = DRAWS) -> Hypotheses:
    """Draw, reject what no launch could show, merge equal ones.

    Empty if no hypothesis explains the journal.
    """
    work = _Draw(found)
    parts = work.parts()
    total = sum(part.weight for part in parts)
    if not parts or total <= 0:
        return _empty(found.evidence)
    width = max(sum(p.counts) + p.unseen for p in parts)
    rows: list[tuple[Ints, Ints, Ints, Floats]] = []
    for part in parts:
        share = part.weight / total
        size = max(1, round(share * draws))
        place, phase, failure = work.fill(part, size)
        spare = ((0, 0), (0, width - place.shape[1]))
        rows.append(
            (
                np.pad(place, spare, constant_values=-1),
                np.pad(phase, spare),
                np.pad(failure, spare),
                np.full(size, share / size),
            )
        )
    place, phase, failure = (np.concatenate([row[i] for row in rows]) for i in range(3))
    weight = np.concatenate([row[3] for row in rows])
    masks = np.where(place >= 0, work.cand.masks[place], NEVER)
    if work.cand.trust is not None:
        weight = weight * work.cand.trust.together(place)
    alive = ~_hidden(masks, phase, failure, found.evidence.first)
    drawn = Hypotheses(
        evidence=found.evidence,
        weight=weight[alive],
        mask=masks[alive],
        place=place[alive],
        phase=phase[alive],
        failure=failure[alive],
    )
    return _merged(drawn) if len(drawn) else _empty(found.evidence)


def _hidden(masks: Masks, phase: Ints, failure: Ints, top: int) -> np.ndarray:
    """(H,): some cause could never be seen, as it holds another of its failure or not later.

    `top` is the failure of all that is wanted: it goes before the others of its phase.
    """
    hidden = np.zeros(len(masks), dtype=bool)
    for i in range(masks.shape[1]):
        for j in range(masks.shape[1]):
            if i == j:
                continue
            holds = (masks[:, j] & ~masks[:, i] == 0) & (masks[:, i] != NEVER)
            before = phase[:, j] < phase[:, i] + (failure[:, i] != top)
            same = (failure[:, i] == failure[:, j]) & (failure[:, i] != UNSEEN)
            hidden |= holds & (before | same)
    return hidden


def _merged(h: Hypotheses) -> Hypotheses:
    """Equal hypotheses as one, their causes in the order of their masks."""
    by = np.argsort(h.mask, axis=1, kind="stable")
    masks = np.take_along_axis(h.mask, by, axis=1)
    place, phase, failure = (
        np.take_along_axis(a, by, axis=1) for a in (h.place, h.phase, h.failure)
    )
    rows = np.concatenate([place, phase, failure], axis=1)
    _, index, back = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    merged = np.asarray(
        np.bincount(back.ravel(), weights=h.weight, minlength=len(index)), dtype=np.float64
    )
    return Hypotheses(
        evidence=h.evidence,
        weight=merged / merged.sum(),
        mask=masks[index],
        place=place[index],
        phase=phase[index],
        failure=failure[index],
    )


def _empty(evidence: Evidence) -> Hypotheses:
    none = np.zeros((0, 1), dtype=np.int64)
    return Hypotheses(
        evidence=evidence,
        weight=np.zeros(0),
        mask=none.astype(np.uint64),
        place=none,
        phase=none,
        failure=none,
    )


def _outcomes(h: Hypotheses, probes: Masks) -> Ints:
    names = len(h.evidence.names)
    # Earliest phase first; the failure of all that is wanted goes before others of its phase.
    rank = h.phase * 4 + np.where(h.failure == h.evidence.first, 0, 1)
    by = np.argsort(rank, axis=1, kind="stable")
    code = np.where(h.failure >= 0, h.failure + 1, names + 1 + np.maximum(0, h.phase + 1))
    masks, codes = np.take_along_axis(h.mask, by, 1), np.take_along_axis(code, by, 1)
    repaired = h.unless()
    saved = None if repaired is None else np.take_along_axis(repaired, by, 1)
    found = np.zeros((len(probes), len(h)), dtype=np.int64)
    lacks, has = ~probes[:, None], probes[:, None]
    for i in reversed(range(masks.shape[1])):  # the earliest is written last
        strikes = (masks[None, :, i] & lacks) == 0
        if saved is not None:
            strikes &= (saved[None, :, i] & has) == 0
        np.copyto(found, codes[None, :, i], where=strikes)
    return found

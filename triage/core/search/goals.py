"""The next launch for each goal, or that the goal is reached.

In:  a Belief. Out: Decision.
Not: budgets, the baseline, words for people (plan.py), or what to do where the model
fails (fallback.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from triage.core.search.actions import Worth, cover
from triage.core.search.belief import SURE, Belief
from triage.core.search.bound import Bar, minimal, worthiest
from triage.core.search.candidates import Floats, Ints
from triage.core.search.choose import WHOLE, Aim, Bonus, Chooser, Probe, pool
from triage.core.search.joint import NEVER, UNSEEN

TRUTHS = 10  # likeliest ones of which the proof is thought through
PROOF = 0.9  # what a failing set that bars all that is better saves
OFTEN, SURER = 0.08, 0.98  # from so many misses on, so sure of each of two things
ALONE = 0.9  # a suspect that fails alone
LIKELY = 0.2  # a suspect that the answers are said to point at
SUSPECTS = 12  # so many suspects are tried alone
WHOLE_TRUTH = SURE  # goal all: of the set of causes as a whole
CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Decision:
    """Launch `mask`; or, if it is None, the goal is reached, and `level` says how surely.

    `kind`: finish (probably the best configuration), split, cause (a suspect alone), bar (a
    failing set that rules out what is better), less (a failing set without one of its flags),
    again (a repetition), confirm (the best has to start once more), audit, reduce.
    """

    mask: int | None
    kind: str = ""
    level: str = ""  # proved | 97% | seen
    bits: float = 0.0
    open: float = 0.0  # bits of the decision that are left


def decide(belief: Belief, goal: str, stop: str) -> Decision | None:
    """The next launch, or the goal is reached; None if the model has no answer."""
    match goal:
        case "first":
            return first(belief, stop)
        case "all":
            return all_causes(belief, stop)
        case _:
            return best(belief, stop)


def best(belief: Belief, stop: str) -> Decision | None:
    """The next launch on the way to the best configuration."""
    space, h = belief.space, belief.hypotheses
    bars = belief.bars()
    if belief.best is not None and not belief.evidence.noise and barred(belief, bars):
        return Decision(None, level="proved")
    if not belief.explained:
        return None
    doubt = _doubt(belief)
    settled = belief.better <= doubt and belief.best is not None
    if settled and belief.evidence.noise and 1 - belief.starts > doubt:
        return Decision(belief.best, kind="confirm")
    if settled and (stop != "proved" or belief.evidence.noise):
        return Decision(None, level="97%")
    actions = belief.actions
    gains: dict[int, Floats] = {}
    aim, finishing = None, set[int]()
    if not settled:
        had = -np.inf if belief.best is None else space.value(belief.best)
        aim = Aim(actions.best, had, doubt, Worth(space))
        few = zip(actions.mask[:12].tolist(), actions.value[:12].tolist(), strict=True)
        finishing = {mask for mask, value in few if value > had + CLOSE}
    region, stays = actions.region, 0
    if stop == "proved":
        value = space.value(belief.best) if settled and belief.best is not None else None
        way = _Bars(belief, bars, value)
        for mask, share in way.shares():
            fails = h.fails(np.array([mask], dtype=np.uint64))[0]
            gains[mask] = gains.get(mask, np.zeros(len(h))) + PROOF * share * fails
        if settled:
            stays = way.stays
            region, missing = way.proofs()
            for mask, rows in missing.items():
                gains[mask] = np.maximum(gains.get(mask, 0.0), rows)
    extra = [*pool(h, actions.mask, belief.luck()), *finishing]
    extra = [*(space.closed(mask | stays) for mask in extra), *gains]
    probe, left = _choose(belief, region, gains, extra, aim=aim)
    if probe is None:
        return None
    kind = "finish" if probe.mask in finishing else "bar" if probe.mask in gains else "split"
    return Decision(probe.mask, kind=kind, bits=probe.bits, open=left)


def _doubt(belief: Belief) -> float:
    """How likely something better may start, and the best may fail after all, at the end.

    Misses are of some causes, not of all alike: where they are many, launches say less than
    their mean rate does.
    """
    return 1 - (SURER if belief.evidence.noise.miss >= OFTEN else SURE)


def regions(belief: Belief, goal: str) -> Ints:
    """(H,) what the goal asks of each hypothesis: hypotheses of one number agree on it."""
    if goal == "best":
        return belief.actions.region
    return _truths(belief)[0]


def barred(belief: Belief, bars: list[Bar]) -> bool:
    """Whether everything worth more than the best holds a set that failed."""
    if belief.best is None:
        return False
    lost = belief.closed - belief.evidence.asked
    open_ = worthiest(belief.space, bars, passed=lost)
    # The baseline is always left, so None says that there is too much to look at.
    return (
        open_ is not None and belief.space.value(open_) <= belief.space.value(belief.best) + CLOSE
    )


def first(belief: Belief, stop: str) -> Decision | None:
    """The next launch on the way to one smallest failing set."""
    known = shown(belief)
    if any(found.proved for found in known):
        return Decision(None, level="proved")
    if not belief.explained:
        return None
    if stop != "proved" and any(found.chance >= SURE for found in known):
        return Decision(None, level="97%")
    h = belief.hypotheses
    chances = marginals(belief)
    top = sorted(chances, key=lambda c: (-chances[c], c))[:40]
    if not top:  # nothing failed yet: whatever fails is welcome
        masks = pool(h, belief.actions.mask, belief.luck())
        probe, left = _choose(belief, _truths(belief)[0], {}, masks)
        return None if probe is None else Decision(probe.mask, "split", bits=probe.bits, open=left)
    has = np.array([((h.mask == np.uint64(m)) & (h.failure == d)).any(axis=1) for m, d in top])
    region, _ = cover(has, h.weight)
    gains: dict[int, Floats] = {}
    told = {(found.mask, found.failure) for found in known}
    for (mask, d), row in list(zip(top, has, strict=True))[:12]:
        if (mask, d) in told:
            continue
        gains[mask] = gains.get(mask, np.zeros(len(h))) + ALONE * row
    for found in known:  # what is left is to show that nothing smaller fails
        if found.chance >= SURE:
            for less in found.open:
                gains[less] = gains.get(less, np.zeros(len(h))) + 1.0
    # A suspicion tells already where a cause is: what else fails is of no use then.
    whole = WHOLE if belief.likelihoods.candidates.trust is None else 0.0
    masks = [*pool(h, belief.actions.mask, belief.luck()), *gains]
    probe, left = _choose(belief, region, gains, masks, whole=whole)
    if probe is None:
        return None
    kind = "cause" if probe.mask in gains else "split"
    return Decision(probe.mask, kind=kind, bits=probe.bits, open=left)


def all_causes(belief: Belief, stop: str) -> Decision | None:
    """The next launch on the way to every smallest failing set."""
    if not belief.explained:
        return None
    h = belief.hypotheses
    label, chance = _truths(belief)
    likeliest = int(chance.argmax())
    gains: dict[int, Floats] = {}
    if chance[likeliest] >= WHOLE_TRUTH:
        open_ = _unproved(belief, label == likeliest)
        if stop != "proved" or belief.evidence.noise or not open_:
            return Decision(None, level="97%")
        gains = {mask: np.ones(len(h)) for mask in open_}
        probe, left = _choose(belief, label, gains, list(gains))
    else:
        if stop == "proved" and not belief.evidence.noise:
            gains = _alone(belief)
        masks = [*pool(h, belief.actions.mask, belief.luck()), *gains]
        probe, left = _choose(belief, label, gains, masks)
    if probe is None:
        return None
    kind = "split"
    if probe.mask in gains:
        is_cause = (h.mask == np.uint64(probe.mask)).any(axis=1)
        sure = chance[likeliest] >= WHOLE_TRUTH
        kind = "cause" if float(is_cause @ h.weight) >= LIKELY else "less" if sure else "split"
    return Decision(probe.mask, kind=kind, bits=probe.bits, open=left)


@dataclass(frozen=True, slots=True)
class Shown:
    """A mask that was launched and failed as `failure`.

    `chance`: it is a smallest one, under the model. `open`: smaller masks of which
    nothing is known; none are left if it is `proved`.
    """

    mask: int
    failure: int
    chance: float
    open: tuple[int, ...]

    @property
    def proved(self) -> bool:
        """With any flag less the failure does not show."""
        return not self.open


def shown(belief: Belief) -> list[Shown]:
    """Masks that showed a failure and hold no smaller one that did, by what is known of them."""
    evidence, chances = belief.evidence, marginals(belief)
    found: list[Shown] = []
    for d in range(len(evidence.names)):
        for mask in minimal(evidence.masks[evidence.failure == d].tolist()):
            chance = chances.get((mask, d), 0.0)
            found.append(Shown(mask, d, chance, _open_below(belief, mask, d)))
    return sorted(found, key=lambda s: (not s.proved, -s.chance, s.mask))


def _open_below(belief: Belief, mask: int, d: int) -> tuple[int, ...]:
    """The mask with one flag less, each way of which it is not known that d does not show."""
    evidence, space = belief.evidence, belief.space
    if evidence.noise:
        return () if marginals(belief).get((mask, d), 0.0) >= SURE else (mask,)
    silent = evidence.failure < 0
    later = (evidence.failure != d) & (evidence.phase > evidence.phases[d])
    above = evidence.masks[silent | (later & (evidence.phases[d] >= 0))].tolist()
    above += evidence.without(d)
    other = set(evidence.masks[evidence.failure != d].tolist())
    found = []
    for j in space.bits(mask):
        less = space.without(mask, 1 << j)
        if less == mask or less & ~space.base == 0 or less in other:
            continue
        if not any(less & ~held == 0 for held in above):
            found.append(less)
    return tuple(dict.fromkeys(found))


def marginals(belief: Belief) -> dict[tuple[int, int], float]:
    """How likely each (mask, failure) is a cause, failures seen only."""
    h = belief.hypotheses
    found: dict[tuple[int, int], float] = {}
    for masks, failures, weight in zip(
        h.mask.tolist(), h.failure.tolist(), h.weight.tolist(), strict=True
    ):
        for mask, d in zip(masks, failures, strict=True):
            if d != UNSEEN and mask != int(NEVER):
                found[mask, d] = found.get((mask, d), 0.0) + weight
    return found


def truth(belief: Belief) -> tuple[list[tuple[int, int]], float]:
    """The likeliest set of (mask, failure) as a whole, and how likely it is."""
    if not belief.explained:
        return [], 0.0
    label, chance = _truths(belief)
    top = int(chance.argmax())
    row = int(np.nonzero(label == top)[0][0])
    h = belief.hypotheses
    pairs = zip(h.mask[row].tolist(), h.failure[row].tolist(), strict=True)
    return [(m, d) for m, d in pairs if m != int(NEVER) and d != UNSEEN], float(chance[top])


def _truths(belief: Belief) -> tuple[Ints, Floats]:
    """(H,) which hypotheses name the same causes, and the weight of each group."""
    h = belief.hypotheses
    rows = np.concatenate([h.place, h.failure], axis=1)
    _, label = np.unique(rows, axis=0, return_inverse=True)
    label = label.ravel().astype(np.int64)
    return label, np.asarray(np.bincount(label, weights=h.weight), dtype=np.float64)


def _alone(belief: Belief) -> dict[int, Floats]:
    """Likely causes, alone: a proof needs each of them launched, so that this saves a launch."""
    h, asked = belief.hypotheses, belief.evidence.asked
    chances: dict[int, float] = {}
    for (mask, _), chance in marginals(belief).items():
        if mask not in asked:
            chances[mask] = chances.get(mask, 0.0) + chance
    likely = sorted(chances, key=lambda m: (-chances[m], m))[:SUSPECTS]
    seen = h.failure != UNSEEN
    return {m: ALONE * ((h.mask == np.uint64(m)) & seen).any(axis=1) for m in likely}


def _unproved(belief: Belief, rows: np.ndarray) -> list[int]:
    """Launches that would show the sets of these hypotheses to be failing and smallest."""
    h, seen = belief.hypotheses, shown(belief)
    row = int(np.nonzero(rows)[0][0])
    asked = belief.evidence.asked
    found: list[int] = []
    for mask, d in zip(h.mask[row].tolist(), h.failure[row].tolist(), strict=True):
        if mask == int(NEVER) or d == UNSEEN:
            continue
        if mask not in asked:
            found.append(mask)
        found += [m for s in seen if (s.mask, s.failure) == (mask, d) for m in s.open]
    return [m for m in dict.fromkeys(found) if m not in asked]


def _choose(
    belief: Belief,
    region: Ints,
    gains: Mapping[int, Floats],
    masks: Iterable[int],
    *,
    aim: Aim | None = None,
    whole: float = WHOLE,
) -> tuple[Probe | None, float]:
    bonus = [Bonus(mask, gain) for mask, gain in gains.items()]
    again = belief.evidence.asked if belief.evidence.noise else frozenset()
    chooser = Chooser(belief.hypotheses, region, bonus, belief.closed, again, aim=aim, whole=whole)
    return chooser.best(masks), float(chooser.base)


class _Bars:
    """How far a failing set would raise the bound on what can still be better."""

    def __init__(self, belief: Belief, bars: list[Bar], value: float | None) -> None:
        self.belief = belief
        self.bars = bars
        space = belief.space
        if value is None:
            value = float((belief.actions.best * belief.hypotheses.weight).sum())
        self.value = value
        now = worthiest(space, bars)
        self.now = space.value(now) if now is not None else -np.inf
        self.stays = self._stays()

    def _stays(self) -> int:
        """The bits that nothing better than the best can do without."""
        space, stays = self.belief.space, 0
        for j in space.bits(space.full):
            less = worthiest(space, [*self.bars, Bar(1 << j)], most=2000)
            if less is not None and space.value(less) <= self.value + CLOSE:
                stays |= 1 << j
        return space.trimmed(stays)

    def proofs(self) -> tuple[Ints, dict[int, Floats]]:
        """(H,) which launches that fail would complete the proof; and of each where it is one."""
        h = self.belief.hypotheses
        causes = [
            tuple(sorted({int(m) for m in row if m != int(NEVER)})) for row in h.mask.tolist()
        ]
        weight: dict[tuple[int, ...], float] = {}
        for key, w in zip(causes, h.weight.tolist(), strict=True):
            weight[key] = weight.get(key, 0.0) + w
        label: dict[tuple[int, ...], int] = {}
        needed: dict[tuple[int, ...], tuple[int, ...]] = {}
        for key in sorted(weight, key=lambda k: (-weight[k], k))[:TRUTHS]:
            needed[key] = self._missing(key)
            label.setdefault(needed[key], len(label))
        region = np.array(
            [label[needed[k]] if k in needed else len(label) for k in causes], dtype=np.int64
        )
        gains: dict[int, Floats] = {}
        for i, key in enumerate(causes):
            for mask in needed.get(key, ()):
                gains.setdefault(mask, np.zeros(len(h)))[i] = 1.0
        _, region = np.unique(region, return_inverse=True)
        return np.asarray(region.ravel(), dtype=np.int64), gains

    def _missing(self, causes: tuple[int, ...]) -> tuple[int, ...]:
        """Failing masks that complete the proof if these are the causes, none of them idle."""
        space = self.belief.space
        wide = [m for m in (space.closed(c | self.stays) for c in causes) if space.lawful(m)]
        kept = list(dict.fromkeys(wide))
        if not self._proved(kept):
            return ()
        for mask in list(kept):
            less = [m for m in kept if m != mask]
            if self._proved(less):
                kept = less
        return tuple(kept)

    def _proved(self, more: Sequence[int]) -> bool:
        then = worthiest(self.belief.space, [*self.bars, *map(Bar, more)], most=2000)
        return then is not None and self.belief.space.value(then) <= self.value + CLOSE

    def shares(self) -> Iterable[tuple[int, float]]:
        """Each mask of the pool, with the share of the way to a proof that it would go."""
        if self.now > self.value + CLOSE:
            for mask in self._pool():
                share = self._of(mask)
                if share > 0:
                    yield mask, share

    def _of(self, mask: int) -> float:
        space = self.belief.space
        then = worthiest(space, [*self.bars, Bar(mask)])
        value = space.value(then) if then is not None else -np.inf
        return float(min(1.0, (self.now - value) / (self.now - self.value)))

    def _pool(self) -> list[int]:
        """Likely causes, alone and with all that nobody would drop for something better."""
        space = self.belief.space
        chances: dict[int, float] = {}
        h = self.belief.hypotheses
        for row, weight in zip(h.mask.tolist(), h.weight.tolist(), strict=True):
            for mask in row:
                if mask != int(NEVER):
                    chances[mask] = chances.get(mask, 0.0) + weight
        likely = sorted(chances, key=lambda m: (-chances[m], m))[:12]
        masks = [*likely, self.stays, *(space.closed(mask | self.stays) for mask in likely)]
        union = self.stays
        for mask in likely[:8]:
            union = space.closed(union | mask)
            masks.append(union)
        return [m for m in dict.fromkeys(masks) if space.lawful(m)]

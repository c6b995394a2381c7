"""How likely a configuration starts though it holds causes, as other flags may repair them.

In:  a Belief that is proved as far as adding a flag never repairs a failure.
Out: the launch that is worth making before the end all the same, None if none is.
Not: an audit that was asked for (audit.py), or repairs that launches show (repairs.py).

The model of causes knows no repairs. Here each cause of a hypothesis has one with some
chance, and it may be any flag outside of the cause, but none of a launch that showed it
where no other of its name was: so what fails with all that is wanted is never repaired,
and what failed once, in a small launch, easily is. What a launch would keep more, times
the chance that it starts, has to be enough of all that is wanted: more where flags are
many and a search is long without it, and three times as much after each launch that was
made in vain.
"""

from __future__ import annotations

import numpy as np

from triage.core.search.actions import Worth
from triage.core.search.belief import Belief
from triage.core.search.bound import above
from triage.core.search.candidates import Floats, Masks
from triage.core.search.joint import Hypotheses

REPAIRED = 0.2  # of the causes another wanted flag repairs
GAIN = 0.04  # of all that is wanted; for less no launch is made that nobody asked for
ENOUGH, VAIN = 0.0006, 3.0  # expected gain by flag, of all that is wanted; times more in vain
MOST = 400  # configurations that are weighed, the worthiest


def worthwhile(belief: Belief) -> int | None:
    """The launch with the largest expected gain, if that is enough."""
    space, best = belief.space, belief.best
    if best is None or belief.evidence.noise or not belief.explained or space.repairs:
        return None
    had, whole = space.value(best), space.value(space.full)
    if not whole:
        return None
    pool = [m for m in above(space, had + GAIN * whole, MOST) if m not in belief.closed]
    if not pool:
        return None
    probes = np.array(pool, dtype=np.uint64)
    gain = (Worth(space).of(probes) - had) / whole * chances(belief.hypotheses, probes)
    at = int(np.round(gain, 12).argmax())
    least = ENOUGH * space.n * VAIN ** _in_vain(belief)
    return pool[at] if gain[at] >= least else None


def _in_vain(belief: Belief) -> int:
    """Launches that failed though, without repairs, their failure was certain."""
    failed = [mask for mask in belief.evidence.failed if mask != belief.evidence.top]
    return sum(any(one & ~mask == 0 for one in failed[:i]) for i, mask in enumerate(failed))


def chances(h: Hypotheses, probes: Masks) -> Floats:
    """(P,) how likely each probe starts: each cause inside it is repaired by something in it."""
    full, shown = np.uint64(h.evidence.space.full), _shown(h)
    outside = np.maximum(1, np.bitwise_count(full & ~h.mask)).astype(np.float64)
    tried = np.bitwise_count(shown & ~h.mask & full)
    starts = np.ones((len(probes), len(h)))
    for i in range(h.mask.shape[1]):
        inside = (h.mask[None, :, i] & ~probes[:, None]) == 0
        more = np.bitwise_count(probes[:, None] & ~(shown | h.mask)[None, :, i])
        repaired = REPAIRED * more / (outside - REPAIRED * tried)[None, :, i]
        starts *= np.where(inside, repaired, 1.0)
    return np.asarray(starts @ h.weight)


def _shown(h: Hypotheses) -> Masks:
    """(H, M) all flags of the launches that showed a cause, as no other of its name was there."""
    evidence = h.evidence
    shown = np.zeros(h.mask.shape, dtype=np.uint64)
    for mask, d in zip(evidence.masks, evidence.failure.tolist(), strict=True):
        if d >= 0:
            inside = (h.mask & ~mask == 0) & (h.failure == d)
            alone = inside & (inside.sum(axis=1) == 1)[:, None]
            shown |= np.where(alone, mask, np.uint64(0))
    return shown

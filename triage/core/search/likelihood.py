"""How well each candidate explains each failure seen, and where unseen causes may hide.

In:  Evidence, Candidates. Out: Likelihoods.
Not: putting the causes of several failures together (joint.py).

A launch dies of the cause inside it whose phase comes first. So a start speaks against
every candidate inside it; a failure against those inside it whose phase is earlier; and
of a later cause it says nothing. Two failures of one phase say nothing of each other,
but that the failure of all that is wanted goes before the others of its phase; where flags
exclude each other, before those of what the largest launch had.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from triage.core.phases import PHASES, order
from triage.core.search.candidates import Candidates, Floats, Ints, candidates_of
from triage.core.search.evidence import STARTED, Evidence
from triage.core.search.space import Space
from triage.core.trials import Noise

# Shares of startup failures by phase, as far as public reports tell; the rest is even.
_OFTEN = {
    "arg-validation": 0.04, "model-construct": 0.03, "weight-load": 0.17,
    "attn-backend-init": 0.02, "memory-profiling": 0.02, "kv-pool-init": 0.18,
    "flashinfer-autotune": 0.02, "graph-capture": 0.21, "warmup-request": 0.21,
}  # fmt: skip
_REST = 0.10
# A flag at which a diagnosis points first, against one at which it does not; the second one
# half as much, and so on down to the least.
SUSPECTED, LEAST_SUSPECTED = 6.0, 1.5
EVEN = 0.2  # share of the prior without a diagnosis in one with it
HINTED, STEP = 120.0, 4.0  # the level that a message asks for, and how fast it falls off
HINT_LIES = 0.1  # share of the even prior where a message asks for a value
STRAY = 0.002  # a launch shows a failure that none of its causes brings; with noise only
PHASE_AGAIN = 0.3  # the machine strikes twice in one phase
PAIRS = 600  # patterns of one failure; of more, the heaviest are weighed in pairs


@dataclass(frozen=True, slots=True, eq=False)
class Likelihoods:
    """Per failure d and candidate, and per stretch of phases for unseen causes.

    `inside` (L, C): the candidate is inside the launch. `apart` (D, C): likelihood of
    what speaks against it. `pattern` (D, C): which launches of the failure hold it, a bit
    each. `own` (D, C): likelihood as the only cause of d; `mixed` (D, C): where the machine
    brings d as well. `transient` (D,): likelihood that d is the machine's alone; these two
    are 0 without noise. `unseen` (T, C): likelihood of a cause
    of another failure with a phase in stretch t, times the prior of the stretch; the
    stretches lie between the phases seen, `starts` (T,) where they begin.
    """

    evidence: Evidence
    candidates: Candidates
    inside: np.ndarray
    priors: Floats
    apart: Floats
    pattern: Ints
    own: Floats
    mixed: Floats
    shows: tuple[float, float]
    machine: float
    transient: Floats
    unseen: Floats
    starts: Ints


def likelihoods(evidence: Evidence) -> Likelihoods:
    """Weigh every candidate against every launch."""
    candidates = candidates_of(evidence.space)
    noise = evidence.noise
    masks, failure, phase = evidence.masks, evidence.failure, evidence.phase
    inside = (candidates.masks[None, :] & ~masks[:, None]) == 0
    started = failure == STARTED
    names = len(evidence.names)
    count = len(candidates.masks)
    apart = np.ones((names, count))
    pattern = np.zeros((names, count), dtype=np.int64)
    own = np.zeros((names, count))
    mixed = np.zeros((names, count))
    priors = np.tile(candidates.prior, (names, 1)) if names else np.zeros((0, count))
    stray, shown = (STRAY if noise else 0.0), 1.0 - noise.miss
    transient = np.zeros(names)
    for d in range(names):
        mine = failure == d
        hides = started | (~mine & (phase > evidence.phases[d]) & (evidence.phases[d] >= 0))
        if d == evidence.first:
            within = (masks & ~np.uint64(evidence.top)) == 0
            hides |= ~mine & (phase == evidence.phases[d]) & (phase >= 0) & within
        if evidence.unless[d]:
            hides &= (masks & np.uint64(evidence.unless[d])) == 0
        apart[d] = _miss(noise, inside[hides].sum(axis=0))
        for mask in evidence.without(d):
            apart[d] *= (candidates.masks & ~np.uint64(mask)) != 0
        held = inside[mine]
        for i, row in enumerate(held[-60:]):
            pattern[d] |= row.astype(np.int64) << i
        own[d] = apart[d] * np.prod(np.where(held, shown, stray), axis=0)
        priors[d] = _prior(evidence.space, candidates, evidence.suspects[d])
        if noise.transient:
            stroke = noise.transient * PHASE_AGAIN
            transient[d] = noise.transient * stroke ** (len(held) - 1)
            mixed[d] = apart[d] * np.prod(np.where(held, shown, stroke), axis=0)
    seen = sorted({int(p) for p in phase if p >= 0})
    starts = np.array([-1, *seen], dtype=np.int64)
    unseen = np.zeros((len(starts), count))
    mass = phase_mass()
    for t, begin in enumerate(starts):
        end = seen[t] if t < len(seen) else len(PHASES)
        hides = started | (phase >= end)
        share = mass[max(0, begin) : end].sum()
        unseen[t] = share * _miss(noise, inside[hides].sum(axis=0))
    return Likelihoods(
        evidence=evidence,
        candidates=candidates,
        inside=inside,
        priors=priors,
        apart=apart,
        pattern=pattern,
        own=own,
        mixed=mixed,
        shows=(stray, shown),
        machine=noise.transient * PHASE_AGAIN,
        transient=transient,
        unseen=unseen,
        starts=starts,
    )


def _miss(noise: Noise, times: np.ndarray) -> Floats:
    """Likelihood that a cause kept still so many times."""
    if noise.miss:
        return np.asarray(noise.miss**times, dtype=np.float64)
    return np.asarray(times == 0, dtype=np.float64)


def _prior(space: Space, candidates: Candidates, suspects: tuple[int, ...]) -> Floats:
    """The prior of one failure's cause: a diagnosis may point at some flags, the surest first.

    A list of suspects says which flags, not how many: it tells sets of one size apart, and
    a set is no likelier for holding more of them. Where a message asks for a value, the
    levels of a range near it are likely to repair.
    """
    if not suspects:
        return candidates.prior
    weighted = candidates.prior.copy()
    levels = [j for j in suspects if space.repairs >> j & 1]
    flags = [j for j in suspects if j not in levels]
    for place, j in enumerate(flags, start=1):
        held = candidates.masks >> np.uint64(j) & np.uint64(1) > 0
        weighted[held] *= max(LEAST_SUSPECTED, SUSPECTED / place)
    before = np.bincount(candidates.count, weights=candidates.prior)
    after = np.bincount(candidates.count, weights=weighted)
    weighted *= (before / np.where(after > 0, after, 1.0))[candidates.count]
    for j in levels:
        weighted *= _near(space, candidates, j)
    even = HINT_LIES if levels else EVEN
    return np.asarray((1 - even) * weighted / weighted.sum() + even * candidates.prior)


def _near(space: Space, candidates: Candidates, hinted: int) -> Floats:
    """By candidate how much likelier a hint makes it: most if that level is the least to help."""
    order = sorted(
        (j for j in range(space.n) if (space.needs[j] | space.users[j]) >> hinted & 1),
        key=lambda j: space.users[j].bit_count(),
    )
    factor = np.ones(len(candidates.masks))
    place = order.index(hinted)
    for i, j in enumerate(order):
        stricter = np.uint64(space.users[j] & ~(1 << j))
        least = (candidates.masks >> np.uint64(j) & np.uint64(1) > 0) & (
            candidates.masks & stricter == 0
        )
        factor[least] = max(1.0, HINTED / STEP ** abs(i - place))
    return factor


@lru_cache(maxsize=1)
def phase_mass() -> Floats:
    """Prior of a cause's phase, by its place in a startup."""
    mass = np.full(len(PHASES), _REST / len(PHASES))
    for name, share in _OFTEN.items():
        mass[order(name)] += share
    return np.asarray(mass / mass.sum())

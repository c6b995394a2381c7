"""What might start after all, if one flag repairs one of the failures that were seen.

In:  a Belief whose best configuration is proved as far as adding a flag never repairs.
Out: the launch that would keep most more, None if there is none left.
Not: repairs that launches contradict each other about (repairs.py).

A flag that repairs a failure is in none of the launches that showed it. So each smallest
failing set is in turn taken to bar only what lacks all such flags, and the worthiest mask
that is not barred is launched, until none is worth more than the best that started.
"""

from __future__ import annotations

from collections.abc import Iterator

from triage.core.search.belief import Belief
from triage.core.search.bound import Bar, minimal, worthiest
from triage.core.search.evidence import STARTED

CLOSE = 1e-9


def unproved(belief: Belief) -> list[int]:
    """Masks worth more than the best, each allowed by one repair; the worthiest first."""
    space = belief.space
    if belief.best is None or belief.evidence.noise:
        return []
    least = space.value(belief.best) + CLOSE
    found = set()
    for bars in _relaxed(belief):
        mask = worthiest(space, bars, passed=belief.closed)
        if mask is not None and space.value(mask) > least:
            found.add(mask)
    return sorted(found, key=lambda m: (-space.value(m), m))


def _relaxed(belief: Belief) -> Iterator[list[Bar]]:
    """All that failed, with one of the smallest sets repaired by what never failed with it."""
    evidence, space = belief.evidence, belief.space
    failed = [
        (mask, failure)
        for mask, failure in zip(evidence.masks.tolist(), evidence.failure.tolist(), strict=True)
        if failure != STARTED
    ]
    smallest = {(m, d) for d in range(len(evidence.names)) for m in _least(failed, d)}
    for mask, failure in sorted(smallest):
        others = [m for m, d in smallest if d == failure and m != mask]
        shown = mask
        for above, d in failed:
            own = d == failure and mask & ~above == 0
            if own and not any(m & ~above == 0 for m in others):
                shown |= above
        unless = space.full & ~shown
        if unless:
            rest = [bar for bar in evidence.bars if bar.mask & mask != mask]
            rest += [Bar(m) for m, d in smallest if (m, d) != (mask, failure)]
            yield [*rest, Bar(mask, unless)]


def _least(failed: list[tuple[int, int]], d: int) -> list[int]:
    return minimal(mask for mask, failure in failed if failure == d)

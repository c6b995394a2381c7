"""What might start after all, if one flag repairs one of the failures that were seen.

In:  a Belief whose best configuration is proved as far as adding a flag never repairs.
Out: the launch that would keep most more, None if there is none left.
Not: repairs that launches contradict each other about (repairs.py).

A flag that repairs a failure is in none of the launches that showed it. So each smallest
failing set is in turn taken to bar only what lacks all such flags, and the worthiest mask
that is not barred is launched, until none is worth more than the best that started. A launch
that holds several sets of one failure says of none that nothing in it repairs it, but of them
together: so nothing of that launch starts with all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_

from triage.core.search.belief import Belief
from triage.core.search.bound import Bar, minimal, worthiest
from triage.core.search.evidence import STARTED

CLOSE = 1e-9


def unproved(belief: Belief, *, together: bool = False) -> list[int]:
    """Masks worth more than the best, each allowed by one repair; the worthiest first.

    `together`: and what is allowed if every failure that can be repaired is.
    """
    space = belief.space
    if belief.best is None or belief.evidence.noise:
        return []
    least = space.value(belief.best) + CLOSE
    found = set()
    for bars in _relaxed(belief, together=together):
        mask = worthiest(space, bars, passed=belief.closed)
        if mask is not None and space.value(mask) > least:
            found.add(mask)
    return sorted(found, key=lambda m: (-space.value(m), m))


def _relaxed(belief: Belief, *, together: bool) -> Iterator[list[Bar]]:
    """All that failed, with one of the smallest sets repaired by what never failed with it.

    Then with all of them at once, if asked for: two flags may repair two failures.
    """
    evidence, space = belief.evidence, belief.space
    failed = [
        (mask, failure)
        for mask, failure in zip(evidence.masks.tolist(), evidence.failure.tolist(), strict=True)
        if failure != STARTED
    ]
    smallest = {(m, d) for d in range(len(evidence.names)) for m in _least(failed, d)}
    groups = list(dict.fromkeys(_groups(failed, space.full)))
    every: list[Bar] = []
    for mask, failure in sorted(smallest):
        unless = space.full & ~_shown(failed, mask, failure)
        every.append(Bar(mask, unless))
        if unless:
            rest = [bar for bar in evidence.bars if bar.mask & mask != mask]
            rest += [Bar(m) for m, d in smallest if (m, d) != (mask, failure)]
            yield [*rest, Bar(mask, unless), *groups]
    if together and any(bar.unless for bar in every):
        yield [*every, *groups]


def _groups(failed: list[tuple[int, int]], full: int) -> Iterator[Bar]:
    """All smallest sets of its failure that a launch held, where these are several."""
    for above, d in failed:
        inside = [m for m in _least(failed, d) if m & ~above == 0]
        if len(inside) > 1:
            yield Bar(reduce(or_, inside), full & ~above)


def _shown(failed: list[tuple[int, int]], mask: int, d: int) -> int:
    """All flags that a launch had in which this set alone can have shown the failure."""
    others = [m for m in _least(failed, d) if m != mask]
    shown = mask
    for above, failure in failed:
        own = failure == d and mask & ~above == 0
        if own and not any(m & ~above == 0 for m in others):
            shown |= above
    return shown


def _least(failed: list[tuple[int, int]], d: int) -> list[int]:
    return minimal(mask for mask, failure in failed if failure == d)

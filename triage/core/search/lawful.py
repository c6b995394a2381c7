"""The largest combinations that the rules allow: where flags exclude each other there are several.

In:  a Space, what started. Out: a largest lawful mask that no launch has covered yet.
Not: what failed (bound.py), or when the search asks for it (plan.py).

If adding a flag never repairs a failure, nothing fails as soon as each of them has started; the
worthiest one alone says nothing of the flag that it had to leave out.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from triage.core.search.candidates import candidates_of
from triage.core.search.space import Space

LEAVES = 64  # largest lawful masks that are compared, or counted


def largest(
    space: Space, started: Collection[int] = (), passed: Collection[int] = ()
) -> tuple[int, ...]:
    """Largest lawful masks inside none of `started`, the worthiest first; `LEAVES` at most.

    `passed` masks cannot be launched: what is left of them without a flag stands for them.
    Empty only if each lawful mask lies inside one of `started`, or is one of `passed`.
    """
    stack, seen = [space.full], set[int]()
    found: dict[int, None] = {}
    while stack and len(found) < LEAVES:
        mask = stack.pop()
        if mask in seen or any(mask & ~held == 0 for held in started):
            continue
        seen.add(mask)
        pair = next((p for p in space.excluded if p & ~mask == 0), None)
        if pair is None and mask not in passed:
            found[_grown(space, mask, passed)] = None
            continue
        less = (space.without(mask, 1 << j) for j in space.bits(mask if pair is None else pair))
        stack += sorted(less, key=space.value)
    return tuple(sorted(found, key=lambda m: (-space.value(m), m)))


def uncovered(
    space: Space, started: Collection[int], passed: Collection[int] = ()
) -> tuple[int | None, float]:
    """The largest lawful mask with most of what may fail outside `started`; that share in all.

    None if nothing is left. The share is that of the prior: 0 once no set of a few flags is
    left that no start holds, 1 where there are too many flags to say.
    """
    masks = largest(space, started, passed)
    if not masks:
        return None, 0.0
    if space.n > np.iinfo(np.uint64).bits - 1:
        return masks[0], 1.0
    candidates = candidates_of(space)
    open_ = np.ones(len(candidates.masks), dtype=bool)
    for mask in started:
        open_ &= (candidates.masks & ~np.uint64(mask)) != 0
    left = np.where(open_, candidates.prior, 0.0)
    held = [float(left[(candidates.masks & ~np.uint64(m)) == 0].sum()) for m in masks]
    best = max(range(len(masks)), key=lambda i: (round(held[i], 9), -i))
    return masks[best], float(left.sum())


def _grown(space: Space, mask: int, passed: Collection[int]) -> int:
    """The mask with whatever the rules allow beside it, the worthiest first."""
    for j in sorted(space.bits(space.full & ~mask), key=lambda j: (-space.worth[j], j)):
        more = mask | space.needs[j]
        if space.lawful(more) and more not in passed:
            mask = more
    return mask

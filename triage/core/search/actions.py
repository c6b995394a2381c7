"""The best configuration under each hypothesis, and which of them agree.

In:  Hypotheses. Out: Actions: masks that could be recommended, and where each is right.
Not: which launch tells them apart (choose.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from triage.core.search.candidates import GENERATORS, Floats, Ints, Masks, candidates_of
from triage.core.search.joint import NEVER, Hypotheses
from triage.core.search.space import Space

CLOSE = 1e-9  # worths nearer than that are equal
PAIRS = 3  # excluded pairs up to here are weighed exactly


@dataclass(frozen=True, slots=True, eq=False)
class Actions:
    """A configurations that are best under some hypothesis, and how H hypotheses rate them.

    `mask`, `value` (A,), the most probable first. `best` (H,): worth of the best
    configuration. `right` (A, H): the configuration starts and none is worth more.
    `region` (H,): a configuration that is right, few in all.
    """

    mask: Masks
    value: Floats
    best: Floats
    right: np.ndarray
    region: Ints
    share: Floats

    def __len__(self) -> int:
        return len(self.mask)


class Worth:
    """Worths of many masks at once: a table for each 11 bits."""

    def __init__(self, space: Space) -> None:
        self.tables: list[Floats] = []
        for low in range(0, max(1, space.n), 11):
            worth = np.array(space.worth[low : low + 11])
            bits = np.arange(1 << len(worth))[:, None] >> np.arange(len(worth)) & 1
            self.tables.append(bits @ worth if len(worth) else np.zeros(1))

    def of(self, masks: Masks) -> Floats:
        """The worth of each mask."""
        total = np.zeros(masks.shape)
        for i, table in enumerate(self.tables):
            part = (masks >> np.uint64(11 * i)) & np.uint64((1 << 11) - 1)
            total += table[np.minimum(part, np.uint64(len(table) - 1)).astype(np.int64)]
        return total


def best_masks(h: Hypotheses, worth: Worth) -> tuple[Masks, Floats]:
    """(H,) the worthiest mask that starts under each hypothesis, and its worth.

    Of each cause one flag has to go, or a flag that repairs it has to stay: every way of
    doing so is one row of a long table, in which each hypothesis has a stretch.
    """
    space, cand = h.evidence.space, candidates_of(h.evidence.space)
    size, width = h.mask.shape
    real = h.mask != NEVER
    flags = np.where(real, cand.count[h.place], 1)
    unless = h.unless()
    ways = flags if unless is None else flags + (unless != 0)
    stretch = ways.prod(axis=1)
    begin = np.cumsum(stretch) - stretch
    row = np.repeat(np.arange(size), stretch)
    rest = np.arange(len(row)) - begin[row]
    gone = np.zeros(len(row), dtype=np.uint64)
    stay: list[tuple[Ints, Masks]] = []
    for i in range(width):
        rest, pick = np.divmod(rest, ways[row, i])
        dropped = cand.hits[h.place[row, i], np.minimum(pick, GENERATORS - 1)]
        drops = real[row, i] & (pick < flags[row, i])
        gone |= np.where(drops, dropped, np.uint64(0))
        if unless is not None:
            repaired = np.nonzero(pick >= flags[row, i])[0]
            stay.append((repaired, unless[row[repaired], i]))
    best, value = np.zeros(size, dtype=np.uint64), np.full(size, -np.inf)
    for pairs in _pairs(space):
        left = np.uint64(space.full) & ~gone & ~np.uint64(pairs)
        kept = worth.of(left)
        for where, one_of in stay:
            kept[where] = np.where(one_of & left[where], kept[where], -np.inf)
        most = np.maximum.reduceat(kept, begin) if size else value
        first = np.nonzero(kept >= most[row] - CLOSE)[0]
        found, at = np.unique(row[first], return_index=True)
        better = most[found] > value[found] + CLOSE
        best[found[better]] = left[first[at[better]]]
        value = np.maximum(value, most)
    if len(space.excluded) > PAIRS:
        best = np.array([space.trimmed(int(mask)) for mask in best], dtype=np.uint64)
        value = worth.of(best)
    return best, value


def _pairs(space: Space) -> Sequence[int]:
    """What may go so that no excluded pair is left: one of each pair, with its users."""
    if not space.excluded or len(space.excluded) > PAIRS:
        return [0]
    sides = [[space.users[j] for j in space.bits(pair)] for pair in space.excluded]
    gone = []
    for chosen in product(*sides):
        mask = 0
        for side in chosen:
            mask |= side
        gone.append(mask)
    return gone


def cover(has: np.ndarray, weight: Floats) -> tuple[Ints, list[int]]:
    """(H,) for each hypothesis one of the things that it has, few in all, by greed.

    `has` (A, H): hypothesis has thing. The things come numbered in the order in which they
    were taken, which is the second answer; a hypothesis without any gets the next number.
    """
    region = np.full(len(weight), -1, dtype=np.int64)
    left = weight.copy()
    order: list[int] = []
    while left.sum() > CLOSE:
        gain = has @ left
        pick = int(gain.argmax())
        if gain[pick] <= 0:
            break
        region[has[pick] & (region < 0)] = len(order)
        left[has[pick]] = 0.0
        order.append(pick)
    region[region < 0] = len(order)
    return region, order


def actions_of(h: Hypotheses, worth: Worth, most: int = 200) -> Actions:
    """The best configurations, and a cover of the hypotheses by as few of them as greed finds."""
    masks, best = best_masks(h, worth)
    unique, back = np.unique(masks, return_inverse=True)
    share = np.bincount(back.ravel(), weights=h.weight, minlength=len(unique))
    kept = np.argsort(-share, kind="stable")[:most]
    unique = unique[kept]
    value = worth.of(unique)
    right = ~h.fails(unique) & (value[:, None] >= best[None, :] - CLOSE)
    region, order = cover(right, h.weight)
    rest = [i for i in range(len(unique)) if i not in order]
    by = np.array(order + rest, dtype=np.int64)
    return Actions(
        mask=unique[by],
        value=value[by],
        best=best,
        right=right[by],
        region=region,
        share=(right @ h.weight)[by],
    )

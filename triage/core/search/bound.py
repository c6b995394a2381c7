"""The worthiest mask that holds no failing set: what may still be better than the best.

In:  a Space and masks that failed. Out: masks.
Not: what is likely to fail (joint.py); this counts only what was seen.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from triage.core.search.space import Space


def minimal(masks: Iterable[int]) -> list[int]:
    """The masks that hold no other of them."""
    found: list[int] = []
    for mask in sorted(set(masks), key=lambda m: (m.bit_count(), m)):
        if not any(other & ~mask == 0 for other in found):
            found.append(mask)
    return found


@dataclass(frozen=True, slots=True)
class Bar:
    """A mask that failed: what holds it fails too, unless it holds a bit of `unless`.

    `unless` is empty but where launches showed that another flag repairs the failure.
    """

    mask: int
    unless: int = 0

    def bars(self, mask: int) -> bool:
        """Whether a launch of this mask would fail."""
        return self.mask & ~mask == 0 and not self.unless & mask


def worthiest(
    space: Space,
    bars: Collection[Bar],
    passed: Collection[int] = (),
    most: int = 20_000,
    above: Collection[int] = (),
) -> int | None:
    """The worthiest lawful mask that nothing bars, none of `passed` and inside none of `above`.

    Best first: whatever is wrong with a mask names bits of which one must go. None if
    nothing is left, or if `most` masks were looked at without an end.
    """
    rules = [*(Bar(pair) for pair in space.excluded), *sorted(bars, key=_size)]
    start = space.full
    queue = [(-space.value(start), ~start)]
    queued = {start}
    for _ in range(most):
        if not queue:
            return None
        kept = ~heapq.heappop(queue)[1]
        if any(kept & ~held == 0 for held in above):
            continue
        fault = next((rule.mask for rule in rules if rule.bars(kept)), None)
        if fault is None:
            if kept not in passed:
                return kept
            fault = kept
        for j in space.bits(fault):
            less = space.without(kept, 1 << j)
            if less not in queued:
                queued.add(less)
                heapq.heappush(queue, (-space.value(less), ~less))
    return None


def above(space: Space, least: float, most: int) -> list[int]:
    """Lawful masks worth `least` or more, the worthiest first, `most` of them."""
    queue = [(-space.value(space.full), ~space.full)]
    queued = {space.full}
    found: list[int] = []
    while queue and len(queued) < 8 * most and len(found) < most:
        kept = ~heapq.heappop(queue)[1]
        fault = next((pair for pair in space.excluded if pair & ~kept == 0), 0)
        if not fault:
            found.append(kept)
        for j in space.bits(fault or kept):
            less = space.without(kept, 1 << j)
            if less not in queued and space.value(less) >= least:
                queued.add(less)
                heapq.heappush(queue, (-space.value(less), ~less))
    return found


def _size(bar: Bar) -> int:
    return bar.mask.bit_count()

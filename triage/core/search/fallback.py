"""The search without a model: QuickXplain inside a failing set, and a hitting set around it.

In:  a Space, what started and what failed. Out: the next launch, or the sets found.
Not: a guess: it takes nothing for granted but that adding a flag never repairs.

Used where no hypothesis explains the journal, or more launches were made than forecast.
It is run from the start each time, on what is known; the first launch whose answer is not
known is the one to make. So it needs no state, and reuses every launch of the search.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from triage.core.search.bound import Bar, minimal, worthiest
from triage.core.search.space import Space


class _Ask(Exception):  # noqa: N818  no error: the launch that is needed next
    def __init__(self, mask: int) -> None:
        super().__init__(mask)
        self.mask = mask


@dataclass(frozen=True, slots=True)
class Reduced:
    """The next launch, or None and the failing sets that were reduced to the end.

    `whole` is False where there was too much to look at, so that nothing is proved.
    """

    probe: int | None
    sets: tuple[int, ...] = ()
    whole: bool = True


class _Reducer:
    def __init__(
        self, space: Space, started: Collection[int], bars: Collection[Bar], order: Sequence[int]
    ) -> None:
        self.space = space
        self.started = list(started)
        self.bars = list(bars)
        self.place = {j: i for i, j in enumerate(order)}

    def fails(self, mask: int) -> bool:
        """What is known of the mask, else the wish to launch it."""
        if any(mask & ~above == 0 for above in self.started):
            return False
        if any(bar.bars(mask) for bar in self.bars):
            return True
        raise _Ask(mask)

    def shrink(self, mask: int) -> int:
        """A smallest failing set inside a failing mask."""
        bits = [j for j in self.space.bits(mask) if self.space.needs[j] & ~self.space.base]
        bits.sort(key=lambda j: self.place.get(j, 0))
        found = self._explain(0, bits, grown=False)
        least = 0
        for j in found:
            least |= self.space.needs[j]
        for j in found:  # what another one needs came along and may be idle
            less = self.space.without(least, 1 << j)
            if less != least and self.fails(less):
                least = less
        return least

    def _explain(self, held: int, bits: list[int], *, grown: bool) -> list[int]:
        if grown and self.fails(held):
            return []
        if len(bits) == 1:
            return bits
        half = len(bits) // 2
        first, second = bits[:half], bits[half:]
        found = self._explain(self._with(held, first), second, grown=bool(first))
        return self._explain(self._with(held, found), first, grown=bool(found)) + found

    def _with(self, mask: int, bits: Sequence[int]) -> int:
        for j in bits:
            mask |= self.space.needs[j]
        return mask


def reduce_first(
    space: Space, started: Collection[int], bars: Collection[Bar], order: Sequence[int]
) -> Reduced:
    """One smallest failing set inside the smallest that is known to fail."""
    work = _Reducer(space, started, bars, order)
    start = min((bar.mask for bar in bars), key=lambda m: (m.bit_count(), m))
    try:
        least = work.shrink(start)
        if least not in {bar.mask for bar in bars}:  # it fails, but as what?
            return Reduced(least)
        return Reduced(None, (least,))
    except _Ask as ask:
        return Reduced(ask.mask)


def reduce_best(
    space: Space, started: Collection[int], bars: Collection[Bar], order: Sequence[int]
) -> Reduced:
    """Launch the worthiest mask that nothing bars, reduce what fails, until it starts."""
    return _reduce(space, started, bars, order, every=False)


def reduce_all(
    space: Space, started: Collection[int], bars: Collection[Bar], order: Sequence[int]
) -> Reduced:
    """The same, until whatever holds no smallest failing set lies inside something that started."""
    return _reduce(space, started, bars, order, every=True)


def _reduce(
    space: Space,
    started: Collection[int],
    bars: Collection[Bar],
    order: Sequence[int],
    *,
    every: bool,
) -> Reduced:
    work = _Reducer(space, started, bars, order)
    above = started if every else ()
    found: list[Bar] = [bar for bar in bars if bar.unless]
    try:
        for mask in minimal(bar.mask for bar in bars if not bar.unless):
            if not any(set_.bars(mask) for set_ in found):
                found.append(Bar(work.shrink(mask)))
        while (open_ := worthiest(space, found, above=above)) is not None:
            if not work.fails(open_):
                break
            found.append(Bar(work.shrink(open_)))
    except _Ask as ask:
        return Reduced(ask.mask)
    # The baseline is always left over, so without `above` nothing left says: too much to look at.
    return Reduced(None, tuple(bar.mask for bar in found), whole=every or open_ is not None)

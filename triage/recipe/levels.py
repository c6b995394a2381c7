"""A number that may be lowered as a chain of changes, each on top of the one before.

In:  a Range. Out: Items for `Problem.repairs`, and which of them needs which.
Not: choosing a level (triage.core.search).
"""

from __future__ import annotations

from decimal import Decimal
from math import ceil

from triage.core.config import SetFlag
from triage.core.trials import Item
from triage.recipe import Range

MOST = 64  # levels of one number; more of them only make the search slow


def chain(range_: Range) -> tuple[tuple[Item, ...], tuple[tuple[str, str], ...]]:
    """One item a level, from the first step to the end, and the pairs of `requires`.

    Each level costs its share of the price: what it costs to have gone so far is the
    sum over the levels up to it. The last step may be shorter than the others.

    Raises:
        ValueError: the range has no step or too many.
    """
    start, end, step = (Decimal(repr(n)) for n in (range_.start, range_.end, range_.step))
    if start == end:
        raise ValueError(f"{range_.flag} goes from {start} to {end}: there is no way to go")
    way = abs(end - start)
    count = ceil(way / step)
    if count > MOST:
        raise ValueError(f"{range_.flag} has {count} steps, and at most {MOST} can be searched")
    sign = 1 if end > start else -1
    values = [start + sign * step * k for k in range(1, count)] + [end]
    items: list[Item] = []
    pairs: list[tuple[str, str]] = []
    before = start
    for value in values:
        key = f"{range_.flag}={_plain(value)}"
        share = float(abs(value - before) / way)
        items.append(
            Item(key=key, change=SetFlag(range_.flag, _plain(value)), weight=range_.price * share)
        )
        if len(items) > 1:
            pairs.append((key, items[-2].key))
        before = value
    return tuple(items), tuple(pairs)


def _plain(value: Decimal) -> str:
    """The number as people write it: 0.86, 4096."""
    text = format(value.normalize(), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text

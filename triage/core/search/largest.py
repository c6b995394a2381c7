"""The largest of ordered values that works, by halving.

In:  how many values there are, and which of them were launched, with what came of it.
Out: the next one to launch, the largest that works, or why there is none.
Not: launching (triage.session) or a search over flags (plan.py).

It rests on one assumption: a value that works, works when it is less. Two launches that
contradict it end the search, for then no halving can be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from math import ceil, log2

from triage.core.records import dataclass

MOST = 100_000  # values; a finer grid is a slip
USUAL_STEPS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Launch the value at `index`; after it at most `left` more launches are needed."""

    index: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Largest:
    """The value at `index` works; the next one was launched and does not, if `bounded`."""

    index: int
    bounded: bool


@dataclass(frozen=True, slots=True)
class NoneWorks:
    """The smallest value was launched and does not work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """The value at `works` works, and the smaller one at `fails` does not."""

    works: int
    fails: int


def next_value(count: int, tried: Mapping[int, bool]) -> Ask | Largest | NoneWorks | Contradiction:
    """What to launch next; the same answers give the same question.

    Args:
        count: How many values there are, in rising order.
        tried: Index -> whether it worked.
    """
    good = [index for index, worked in tried.items() if worked]
    bad = [index for index, worked in tried.items() if not worked]
    low, high = max(good, default=-1), min(bad, default=count)
    if low > high:
        return Contradiction(works=low, fails=high)
    if high - low > 1:
        middle = (low + high) // 2
        return Ask(index=middle, left=most_launches(max(middle - low, high - middle) - 1))
    if low < 0:
        return NoneWorks()
    return Largest(index=low, bounded=high < count)


def most_launches(count: int) -> int:
    """The most launches that finding the largest of `count` values takes."""
    return ceil(log2(count + 1))


def grid(low: str, high: str, step: str = "") -> tuple[str, ...]:
    """The values from `low` to `high`, both of them, as words of a command line.

    Without a step there are about 32 values, whole ones where both ends are whole.

    Raises:
        ValueError: an end or the step is no number, or there is no way from low to high.
    """
    try:
        first, last = Decimal(low), Decimal(high)
        stride = Decimal(step) if step else _usual(first, last)
    except InvalidOperation:
        raise ValueError(f"{low}..{high}{':' + step if step else ''} are no numbers") from None
    if not (first.is_finite() and last.is_finite() and stride.is_finite()) or stride <= 0:
        raise ValueError(f"the step from {low} to {high} must be a number above 0")
    if first >= last:
        raise ValueError(f"{low} is not below {high}")
    count = int((last - first) / stride) + 1
    if count > MOST:
        raise ValueError(f"{count} values from {low} to {high} are too many: take a larger step")
    values = [first + stride * index for index in range(count)]
    if values[-1] != last:
        values.append(last)
    return tuple(map(_plain, values))


def _usual(first: Decimal, last: Decimal) -> Decimal:
    step = (last - first) / USUAL_STEPS
    whole = first == first.to_integral_value() and last == last.to_integral_value()
    if whole:
        return max(Decimal(1), step.to_integral_value())
    return max(step.quantize(Decimal("0.001")), Decimal("0.001"))


def _plain(value: Decimal) -> str:
    """The number as people write it: 0.86, 4096."""
    text = format(value.normalize(), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text

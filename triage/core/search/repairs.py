"""Launches that contradict each other: a failing set inside one that started.

In:  answers by mask. Out: Conflicts: which launch to make again, and what repairs what.
Not: the model of causes (likelihood.py), which takes these as given.

Either an answer was luck, which a second launch of both shows, or a flag that only the
larger one has repairs the failure. Between the two lies a chain of masks; halving it
finds the flag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triage.core.search.space import Space

AGAIN = 2  # answers of a mask before a contradiction is believed


@dataclass(frozen=True, slots=True)
class Conflict:
    """`fails` failed as `failure`, `starts` holds it and started; `repairs` is what it has more.

    `probe` is the launch that would tell more, None if one flag is left.
    """

    failure: str
    fails: int
    starts: int
    repairs: int
    probe: int | None
    again: bool  # the probe repeats a launch


def conflicts(space: Space, answers: Mapping[int, Sequence[str | None]]) -> tuple[Conflict, ...]:
    """One conflict for each failure that has any, narrowed as far as the launches go.

    Args:
        space: The problem in bits.
        answers: By mask its answers in order, the failure's name or None for a start.
    """
    steady = {mask: told[0] for mask, told in answers.items() if len(set(told)) == 1}
    started = [mask for mask, name in steady.items() if name is None]
    found: list[Conflict] = []
    for name in dict.fromkeys(n for n in steady.values() if n is not None):
        pairs = [
            (mask, above)
            for mask, own in steady.items()
            if own == name
            for above in started
            if mask & ~above == 0
        ]
        if not pairs:
            continue
        low, high = min(pairs, key=lambda p: ((p[1] & ~p[0]).bit_count(), p))
        probe, again = None, False
        for mask in (low, high):
            if probe is None and len(answers[mask]) < AGAIN:
                probe, again = mask, True
        if probe is None:
            probe = _between(space, low, high, answers)
        found.append(Conflict(name, low, high, high & ~low, probe, again))
    return tuple(found)


def _between(
    space: Space, low: int, high: int, answers: Mapping[int, Sequence[str | None]]
) -> int | None:
    """Half way from the one that fails to the one that starts; None if nothing lies between."""
    more = space.bits(high & ~low)
    half = low
    for j in more:
        step = (half | space.needs[j]) & high
        if step == high:
            break
        half = step
        if (half & ~low).bit_count() * 2 >= len(more):
            break
    return half if half not in (low, high) and half not in answers else None


def unsteady(answers: Mapping[int, Sequence[str | None]]) -> bool:
    """Whether one configuration gave two different answers."""
    return any(len(set(told)) > 1 for told in answers.values())

"""Subsets of the wanted items that may be launched, and the heaviest of them.

In:  a Problem and sets of item keys. Out: sets of item keys, all of them allowed.
Not: what a launch of them showed (journal.py) or which to launch next (plan.py).
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable
from dataclasses import replace

from triage.core.config import Change, apply
from triage.core.trials import Problem, left_out
from triage.core.wording import item_key

Keys = frozenset[str]


def distinct(problem: Problem) -> Problem:
    """The problem less items that change nothing: what the baseline has, or an earlier item sets.

    Two subsets of the result never give the same config, so none is launched twice.
    """
    taken: dict[Change, str] = {}
    for item in problem.items:
        if apply(problem.baseline, (item.change,)) != problem.baseline:
            taken.setdefault(item.change, item.key)
    kept = set(taken.values())
    # What the baseline has stays needed by its own name: an item may leave it out.
    same = {item.key: taken.get(item.change, item_key(item.change)) for item in problem.items}
    absent = {i.key for i in problem.items if left_out(i.change) and i.change not in taken}
    return replace(
        problem,
        items=tuple(item for item in problem.items if item.key in kept),
        requires=tuple((a, same.get(b, b)) for a, b in problem.requires if b not in absent),
    )


def with_needs(problem: Problem, keys: Iterable[str]) -> Keys | None:
    """The smallest allowed subset that holds `keys`, or None if there is none."""
    chosen = set(keys)
    wanted = problem.keys()
    while needed := {b for _, b in problem.unmet(chosen) if b in wanted}:
        chosen |= needed
    return frozenset(chosen) if problem.allowed(chosen) else None


def less(problem: Problem, keys: Collection[str], item: str) -> Keys:
    """The largest allowed part of an allowed subset without `item` and what needs it."""
    chosen = frozenset(keys) - {item}
    while unmet := problem.unmet(chosen):
        chosen -= {a for a, _ in unmet}
    return chosen


def one_smaller(problem: Problem, keys: Keys) -> tuple[tuple[str, Keys], ...]:
    """Each way to take one item away: (item, what is left), in the order of the items."""
    return tuple((i.key, less(problem, keys, i.key)) for i in problem.items if i.key in keys)


def rank(problem: Problem, keys: Collection[str]) -> tuple[float, tuple[int, ...]]:
    """Sort key: the heavier subset first, then the one with earlier items."""
    places = tuple(n for n, item in enumerate(problem.items) if item.key in keys)
    return -problem.weight(keys), places


def heaviest(
    problem: Problem, failing: Collection[Keys] = (), passed: Collection[Keys] = ()
) -> Keys | None:
    """The heaviest allowed subset that holds no set of `failing` and is none of `passed`.

    Best first over what is kept: whatever is wrong with a set names the items of
    which one must go, so each answer is a descendant of all items, and the first
    faultless set that is taken up is the heaviest one.

    Returns:
        The subset, the empty one included; None if nothing is left.
    """
    start = problem.keys()
    queue = [(rank(problem, start), sorted(start))]
    queued = {start}
    while queue:
        _, names = heapq.heappop(queue)
        kept = frozenset(names)
        fault = _fault(problem, kept, failing, passed)
        if fault is None:
            return kept
        for item in sorted(fault):
            smaller = kept - {item}
            if smaller not in queued:
                queued.add(smaller)
                heapq.heappush(queue, (rank(problem, smaller), sorted(smaller)))
    return None


def _fault(
    problem: Problem, kept: Keys, failing: Collection[Keys], passed: Collection[Keys]
) -> Collection[str] | None:
    """Items of which at least one must go, or None if the set will do."""
    for bad in failing:
        if bad <= kept:
            return bad
    for a, b in problem.not_both:
        if a in kept and b in kept:
            return (a, b)
    for a, b in problem.unmet(kept):
        return (a, *(i.key for i in problem.items if i.key in kept and left_out(i.change) == b))
    return kept if kept in passed else None

"""More launches to make at the same time, on other nodes.

In:  a Belief, the goal, the launch that was chosen. Out: masks that tell most together with it.
Not: choosing the first (goals.py) or launching (triage.session).

The answers of one batch are read together. So the next of a batch is the launch whose answer
tells most about the decision given those of the others, whatever they are.
"""

from __future__ import annotations

import numpy as np

from triage.core.search.belief import Belief
from triage.core.search.candidates import Floats, Ints
from triage.core.search.choose import pool
from triage.core.search.goals import regions


def companions(belief: Belief, goal: str, first: int, more: int) -> tuple[int, ...]:
    """At most `more` masks beside `first`, all different, none with an answer yet."""
    h, space = belief.hypotheses, belief.space
    if not belief.explained or more < 1:
        return ()
    region = regions(belief, goal)
    masks = dict.fromkeys([*belief.actions.mask[:12].tolist(), *_pool(belief)])
    found: list[int] = []
    told = _numbered(h.outcomes(np.array([first], dtype=np.uint64)))[0]
    for _ in range(more):
        left = [
            m for m in masks
            if m not in belief.closed and m != first and m not in found and space.lawful(m)
        ]  # fmt: skip
        if not left:
            break
        codes = _numbered(h.outcomes(np.array(left, dtype=np.uint64)))
        joint = codes * (int(told.max()) + 1) + told
        bits = np.array([_bits(row, region, h.weight) for row in joint])
        best = int(np.argmax(np.round(bits, 9)))
        if bits[best] <= _bits(told, region, h.weight) + 1e-6:
            break
        found.append(left[best])
        told = _numbered(joint[best : best + 1])[0]
    return tuple(found)


def _pool(belief: Belief) -> list[int]:
    return pool(belief.hypotheses, belief.actions.mask, belief.luck(1))


def _numbered(codes: Ints) -> Ints:
    """The same answers as small numbers."""
    return np.asarray(np.unique(codes, return_inverse=True)[1].reshape(codes.shape), dtype=np.int64)


def _bits(told: Ints, region: Ints, weight: Floats) -> float:
    """How much answers tell about the region."""
    size = int(region.max()) + 1
    least = (int(told.max()) + 1) * size
    cells = np.bincount(told * size + region, weights=weight, minlength=least).astype(np.float64)
    table = cells.reshape(-1, size)
    return _entropy(table.sum(axis=0)) + _entropy(table.sum(axis=1)) - _entropy(cells)


def _entropy(weight: Floats) -> float:
    some = weight[weight > 0]
    return float(-(some * np.log2(some)).sum())

"""More launches to make at the same time, on other nodes.

In:  a Belief, the goal, the launches whose answers are not there yet. Out: masks that tell most
     together with them; the journal as if those answers were there.
Not: choosing a launch by itself (goals.py) or launching (triage.session).

The next beside others is the launch whose answer tells most about the decision given theirs,
whatever they are. Where none tells more, as in a proof, the likeliest answers are taken as given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from triage.core.phases import PHASES
from triage.core.search.belief import Belief
from triage.core.search.candidates import Floats, Ints
from triage.core.search.choose import pool
from triage.core.search.goals import regions
from triage.core.search.journal import Known
from triage.core.trials import Entry, Seen


def companions(belief: Belief, goal: str, flying: Sequence[int], more: int) -> tuple[int, ...]:
    """At most `more` masks beside those in flight, all different, none with an answer yet."""
    h, space = belief.hypotheses, belief.space
    if not belief.explained or more < 1:
        return ()
    region = regions(belief, goal)
    masks = dict.fromkeys([*belief.actions.mask[:12].tolist(), *_pool(belief)])
    found: list[int] = []
    told = np.zeros(len(h), dtype=np.int64)
    for row in h.outcomes(np.array(flying, dtype=np.uint64)):
        told = _numbered(told * (int(row.max()) + 1) + row)
    for _ in range(more):
        left = [
            m for m in masks
            if m not in belief.closed and m not in flying and m not in found and space.lawful(m)
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


def as_if(known: Known, belief: Belief, flying: Sequence[int]) -> Known:
    """The journal with the likeliest answer of each launch in flight, as far as one is known."""
    h, names = belief.hypotheses, belief.evidence.names
    phases = belief.evidence.phases
    entries, resolved = list(known.entries), dict(known.resolved)
    for mask in flying:
        if not belief.explained:
            break
        codes = h.outcomes(np.array([mask], dtype=np.uint64))[0]
        code = int(np.bincount(codes, weights=h.weight).argmax())
        items = belief.space.items(mask)
        entry = Entry(number=0, items=items, seen=Seen.STARTS)
        if code:
            d = code - 1
            phase = PHASES[phases[d]] if d < len(names) and phases[d] >= 0 else "unknown"
            name = names[d] if d < len(names) else "not seen yet"
            entry = replace(entry, seen=Seen.FAILS, signature=name, phase=phase)
        entries.append(entry)
        resolved[items] = entry
    return replace(known, entries=tuple(entries), resolved=resolved)


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

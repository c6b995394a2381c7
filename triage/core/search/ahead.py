"""Two launches deep: which of a few good probes leaves least to do after the best next one.

In:  a Chooser, probes that it rates well, how sure the end must be. Out: the best of them.
Not: finding good probes (choose.py) or when the search ends (goals.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from triage.core.search.candidates import Floats, Ints
from triage.core.search.choose import Chooser, Probe, left, sums

FIRST, SECOND = 10, 60  # probes weighed as the next launch and as the one after it
LABELS = 400  # answers to the question that are still open; more are weighed one launch deep
OFTEN = 0.8  # launches that a bit takes
SOME = 0.4
TINY = 1e-12


def look(chooser: Chooser, scores: dict[int, float], sure: float) -> Probe | None:
    """The probe with the fewest launches to expect until one label has `sure` of the weight."""
    if not scores:
        return None
    ranked = sorted(scores, key=lambda m: (-round(scores[m], 9), m))
    if chooser.regions > LABELS:
        mask = ranked[0]
        return Probe(mask, scores[mask], chooser.bits(mask))
    second = ranked[:SECOND]
    flat, kinds, lost = chooser.table(second)
    work = _Ahead(chooser.region, chooser.h.weight, flat, kinds, 1 - lost, sure)
    cost = [work.cost(i) for i in range(min(FIRST, len(second)))]
    mask = second[int(np.argmin(np.round(cost, 9)))]
    return Probe(mask, scores[mask], chooser.bits(mask))


class _Ahead:
    """`flat` (P, H) the answer of each probe; `passes` (P,) that the engine takes it at all."""

    def __init__(
        self,
        label: Ints,
        weight: Floats,
        flat: Ints,
        kinds: int,
        passes: Floats,
        sure: float,
    ) -> None:
        self.label = label
        self.weight = weight
        self.flat = flat
        self.kinds = kinds
        self.passes = np.maximum(passes, 0.05)
        self.sure = sure

    def cost(self, first: int) -> float:
        """Launches to expect if this probe is next."""
        total = 1 / float(self.passes[first])
        for answer in np.unique(self.flat[first]).tolist():
            rows = self.flat[first] == answer
            total += float(self.weight[rows].sum()) * self._after(rows)
        return total

    def _after(self, rows: np.ndarray) -> float:
        """Launches to expect where only these hypotheses are left."""
        weight = self.weight[rows]
        _, label = np.unique(self.label[rows], return_inverse=True)
        mass = float(weight.sum())
        each = np.bincount(label, weights=weight)
        if mass <= TINY or float(each.max()) >= self.sure * mass:
            return 0.0
        labels = len(each)
        flat = self.flat[:, rows]
        probes = len(flat)
        cells = ((np.arange(probes)[:, None] * self.kinds + flat) * labels + label).ravel()
        spread = np.broadcast_to(weight, flat.shape).ravel()
        table = sums(cells, spread, probes * self.kinds * labels).reshape(probes, -1, labels)
        share = table.sum(axis=2)
        bits = left(table) / np.maximum(share, TINY)
        open_ = table.max(axis=2) < self.sure * share
        rest = np.where(open_, share * np.maximum(1.0, SOME + OFTEN * bits), 0.0).sum(axis=1)
        return float((1 / self.passes + rest / mass).min())

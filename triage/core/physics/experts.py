"""Which experts a step touches, and how unevenly whole experts lie on the ranks.

In:  experts, experts per token, tokens of a step, ranks.
Out: expected experts touched; the expected maximum over ranks, in units of the mean.
Not: skew of a real router: tokens choose independently and evenly here. Skewed or
     correlated tokens touch fewer experts and lie less evenly.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb, floor

import numpy as np


def touched(experts: int, per_token: int, tokens: float) -> float:
    """Expected experts of a layer that `tokens` tokens touch: E (1 - (1 - k/E)^T)."""
    if experts == 0:
        return 0.0
    return experts * (1.0 - float((1.0 - per_token / experts) ** tokens))


def imbalance(experts: int, per_token: int, tokens: float, ranks: int) -> float:
    """Touched experts of the busiest rank over the mean of all ranks; at least 1.

    Given how many experts are touched, each set of them is equally likely, so the counts
    on the ranks are drawn without replacement; their number is taken at its mean.
    """
    if experts == 0 or ranks <= 1 or experts % ranks:
        return 1.0
    mean = touched(experts, per_token, tokens)
    low = floor(mean)
    part = mean - low
    most = (1 - part) * _expected_maximum(experts // ranks, ranks, low)
    if part:
        most += part * _expected_maximum(experts // ranks, ranks, low + 1)
    return max(1.0, most * ranks / mean)


@lru_cache(maxsize=4096)
def _expected_maximum(each: int, ranks: int, drawn: int) -> float:
    """E[max over ranks] of the marks if `drawn` of `each * ranks` places are marked.

    The counts are binomials of one probability, given their sum; that all are at most m
    is a product of polynomials cut at m, read at the power `drawn`.
    """
    share = drawn / (each * ranks)
    if share <= 0.0 or share >= 1.0:
        return float(min(each, drawn))
    counts = np.arange(each + 1)
    chances = np.array([comb(each, int(c)) for c in counts], dtype=float)
    chances *= share**counts * (1 - share) ** (each - counts)
    whole = _power(chances, ranks, drawn)
    total = 0.0
    for most in range(each):  # E[max] is the sum of P(max > m)
        total += 1.0 - _power(chances[: most + 1], ranks, drawn) / whole
    return total


def _power(chances: np.ndarray, ranks: int, drawn: int) -> float:
    """The coefficient of x^drawn in the polynomial `chances` to the power `ranks`."""
    made = np.ones(1)
    for _ in range(ranks):
        made = np.convolve(made, chances)[: drawn + 1]
    return float(made[drawn]) if len(made) > drawn else 0.0

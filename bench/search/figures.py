"""Figures of landscapes that were played.

In:  a list of Played. Out: numbers.
Not: what they must be (bars.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from bench.search.play import Played

Z = 1.96


def mean(played: Sequence[Played]) -> float:
    """Launches on average."""
    return sum(p.launches for p in played) / len(played)


def median(played: Sequence[Played]) -> float:
    """Launches of the middle landscape."""
    return percentile([p.launches for p in played], 0.5)


def p90(played: Sequence[Played]) -> float:
    """Launches that nine of ten landscapes stay within."""
    return percentile([p.launches for p in played], 0.9)


def percentile(counts: Sequence[float], share: float) -> float:
    """The value that so large a share stays within."""
    ordered = sorted(counts)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def right(played: Sequence[Played]) -> float:
    """The share of right answers, in per cent."""
    return 100 * sum(p.right for p in played) / len(played)


def starts(played: Sequence[Played]) -> float:
    """The share of recommendations that start, in per cent."""
    return 100 * sum(p.starts for p in played) / len(played)


def kept(played: Sequence[Played]) -> float:
    """Worth kept, as a share of the best possible."""
    return sum(p.kept for p in played) / len(played)


def hours(played: Sequence[Played]) -> float:
    """Hours of launching on average."""
    return sum(p.seconds for p in played) / len(played) / 3600


def decision_ms(played: Sequence[Played]) -> float:
    """CPU time of one decision, milliseconds on average."""
    launches = sum(p.decisions for p in played)
    return 1000 * sum(p.deciding_s for p in played) / max(1, launches)


def slowest_ms(played: Sequence[Played]) -> float:
    """CPU time of the slowest decision of 95 % of the landscapes, milliseconds."""
    return 1000 * percentile([p.slowest_s for p in played], 0.95)


def claimed(played: Sequence[Played], level: str) -> list[Played]:
    """Those whose search ended with this claim."""
    return [p for p in played if p.level == level]


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share, in per cent."""
    if not of:
        return 0.0, 100.0
    share, z = hits / of, Z * Z / of
    middle = (share + z / 2) / (1 + z)
    spread = Z * sqrt(share * (1 - share) / of + z / (4 * of)) / (1 + z)
    return 100 * max(0.0, middle - spread), 100 * min(1.0, middle + spread)

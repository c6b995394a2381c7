"""What is measured: families of landscapes, a goal, and who searches them.

In:  nothing. Out: CELLS.
Not: running them (runs.py) or what must hold (bars.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.search.landscape import Shape
from bench.search.ours import Ours
from bench.search.play import Strategy
from bench.search.rivals import (
    ALL,
    BEST,
    BEST_FLAKY,
    FIRST,
    FIRST_FLAKY,
    HITTING_SET,
    ONE_AT_A_TIME,
    QUICKXPLAIN_STAR,
)
from triage.core.trials import Noise

FOUR = (0.0, 0.0, 0.0, 1.0)
LIKELY = Ours(stop="97%", name="triage, 97 %")
PROVED = Ours(name="triage, proved")
AUDIT = Ours(audit=True, name="triage, proved, audit")
USUAL = Ours(stop="97%", noise=Noise(miss=0.05, transient=0.10), name="triage, default noise")
TOLD = Ours(stop="97%", noise=Noise(miss=0.1, transient=0.2), name="triage, told 20 %")


@dataclass(frozen=True, slots=True)
class Cell:
    """One family of landscapes, one goal, and the strategies that are played on the same draws.

    `quick`: how many landscapes the quick version plays, 0 none.
    """

    family: str
    goal: str
    shape: Shape
    strategies: tuple[Strategy, ...]
    landscapes: int = 200
    quick: int = 0

    @property
    def title(self) -> str:
        """What tells it from other cells."""
        return f"{self.family}, n={self.shape.n}, causes={self.shape.causes}, {self.goal}"

    def rivals(self) -> tuple[Strategy, ...]:
        """The strategies that are not ours."""
        return tuple(s for s in self.strategies if not isinstance(s, Ours))


def _plain(n: int, causes: int) -> list[Cell]:
    """One size without a prior, noise or repairs: the three goals, with every peer."""
    target = (n, causes) == (16, 2)
    shape = Shape(n=n, causes=causes)
    return [
        Cell("plain", "best", shape, (LIKELY, PROVED, *BEST), quick=10 if target else 0),
        Cell("plain", "first", shape, (PROVED, *FIRST), quick=20 if (n, causes) == (8, 2) else 0),
        Cell("plain", "all", shape, (LIKELY, *ALL), quick=8 if target else 0),
    ]


def _cells() -> list[Cell]:
    found = [cell for n, m in ((16, 2), (16, 1), (16, 3)) for cell in _plain(n, m)]
    found += [
        Cell("flake 5 %", "best", Shape(16, 2, flake=0.05), (USUAL, *BEST_FLAKY), quick=6),
        Cell("flake 5 %", "first", Shape(16, 2, flake=0.05), (USUAL, *FIRST_FLAKY)),
        Cell("flake 20 %", "best", Shape(16, 2, flake=0.2), (TOLD, *BEST_FLAKY)),
        Cell("flake 20 %", "first", Shape(16, 2, flake=0.2), (TOLD, *FIRST_FLAKY)),
    ]
    for n in (8, 16):
        for prior in ("good", "misleading"):
            shape = Shape(n=n, causes=2, prior=prior)
            found += [
                Cell(f"{prior} prior", "best", shape, (LIKELY, HITTING_SET)),
                Cell(f"{prior} prior", "first", shape, (PROVED, QUICKXPLAIN_STAR)),
            ]
    for causes in (1, 2):
        shape = Shape(n=16, causes=causes, sizes=FOUR)
        found += [
            Cell("causes of 4 flags", "best", shape, (PROVED, HITTING_SET)),
            Cell("causes of 4 flags", "first", shape, (PROVED, QUICKXPLAIN_STAR)),
        ]
    for n, causes in ((8, 2), (8, 3), (12, 2)):
        shape = Shape(n=n, causes=causes, repaired=0.6)
        others = (HITTING_SET, ONE_AT_A_TIME)
        found.append(
            Cell(
                "a flag repairs", "best", shape, (PROVED, AUDIT, *others), quick=12 * (causes == 3)
            )
        )
    for n in (10, 16):
        shape = Shape(n=n, causes=2, levels=4, repairs=2)
        others = (HITTING_SET, ONE_AT_A_TIME)
        found.append(
            Cell(
                "numbers and repairs", "best", shape, (LIKELY, PROVED, *others), quick=8 * (n == 10)
            )
        )
    found += [cell for n in (4, 8, 25) for m in (1, 2, 3) for cell in _plain(n, m)]
    return found


CELLS = tuple(_cells())

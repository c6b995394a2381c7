"""What is measured: families of landscapes, goals, and what must hold of each.

In:  nothing. Out: CELLS.
Not: running them (tables.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bench.search.landscape import Shape
from bench.search.ours import Ours
from bench.search.play import Played
from triage.core.trials import Noise

USUAL = Noise(miss=0.05, transient=0.10)  # what a user says who knows only that it is flaky
FOUR = (0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Gate:
    """A figure that must hold: `of` the played landscapes at most, or at least, `limit`.

    `loose` is the limit where few landscapes are played.
    """

    say: str
    of: Callable[[list[Played]], float]
    limit: float
    loose: float
    most: bool = True

    def holds(self, played: list[Played], *, quick: bool) -> bool:
        """Whether the figure is within its limit."""
        value, limit = self.of(played), self.loose if quick else self.limit
        return value <= limit + 1e-9 if self.most else value >= limit - 1e-9


def mean(played: list[Played]) -> float:
    """Launches on average."""
    return sum(p.launches for p in played) / len(played)


def median(played: list[Played]) -> float:
    """Launches of the middle landscape."""
    return percentile(played, 0.5)


def p90(played: list[Played]) -> float:
    """Launches in nine of ten landscapes."""
    return percentile(played, 0.9)


def percentile(played: list[Played], share: float) -> float:
    """Launches that so many landscapes stay within."""
    counts = sorted(p.launches for p in played)
    return counts[min(len(counts) - 1, int(share * len(counts)))]


def right(played: list[Played]) -> float:
    """The share of right answers, in per cent."""
    return 100 * sum(p.right for p in played) / len(played)


def starts(played: list[Played]) -> float:
    """The share of recommendations that start, in per cent."""
    return 100 * sum(p.starts for p in played) / len(played)


def kept(played: list[Played]) -> float:
    """Worth kept, as a share of the best possible."""
    return sum(p.kept for p in played) / len(played)


def _at_most(say: str, of: Callable[[list[Played]], float], limit: float) -> Gate:
    return Gate(say, of, limit, loose=limit * 1.35 + 1)


def _right(limit: float) -> Gate:
    return Gate("right", right, limit, loose=limit - 12, most=False)


@dataclass(frozen=True, slots=True)
class Cell:
    """One family of landscapes, one goal, one way of ours, and its gates."""

    family: str
    goal: str
    shape: Shape
    ours: Ours
    gates: tuple[Gate, ...] = ()
    quick: bool = False
    landscapes: int = 200
    peers: bool = field(default=False)  # the peers are played as well


def _cells() -> list[Cell]:
    found: list[Cell] = []
    likely, proved = Ours(stop="97%", name="triage, 97 %"), Ours(name="triage, proved")
    for n in (4, 8, 16, 25):
        for causes in (1, 2, 3):
            target = (n, causes) == (16, 2)
            few = 60 if n == 25 else 200
            shape = Shape(n=n, causes=causes)
            gates = (
                _at_most("mean", mean, 7.5),
                _at_most("median", median, 8),
                _at_most("p90", p90, 11),
                _right(98),
            )
            sure = (_at_most("mean", mean, 9.0), Gate("right", right, 100, 100, most=False))
            every = (_at_most("mean", mean, 14), _right(98))
            plain = (_right(95),)
            exact = (Gate("right", right, 100, 100, most=False),)
            found += [
                Cell(
                    "plain",
                    "best",
                    shape,
                    likely,
                    gates if target else plain,
                    target,
                    few,
                    peers=True,
                ),
                Cell("plain", "best", shape, proved, sure if target else exact, target, few),
                Cell("plain", "first", shape, proved, exact, n == 8, few, peers=True),
                Cell(
                    "plain", "all", shape, likely, every if target else (), target, few, peers=True
                ),
            ]
    alone = (Gate("right", right, 100, 100, most=False),)
    steady = (
        Gate("starts", starts, 100, 100, most=False),
        Gate("kept", kept, 0.99, 0.95, most=False),
    )
    for causes in (1, 2):
        shape = Shape(n=16, causes=causes, sizes=FOUR)
        found += [
            Cell("causes of 4 flags", "best", shape, proved, alone, landscapes=60, peers=True),
            Cell("causes of 4 flags", "first", shape, proved, alone, landscapes=60, peers=True),
        ]
    for prior in ("good", "misleading"):
        for n in (8, 16):
            shape = Shape(n=n, causes=2, prior=prior)
            found += [
                Cell(f"{prior} prior", "best", shape, likely, (_right(95),), landscapes=100),
                Cell(f"{prior} prior", "first", shape, proved, alone, landscapes=100, peers=True),
            ]
    told = Ours(stop="97%", noise=Noise(miss=0.1, transient=0.2), name="triage, told 20 %")
    usual = Ours(stop="97%", noise=USUAL, name="triage, default noise")
    found += [
        Cell(
            "flake 5 %", "best", Shape(16, 2, flake=0.05), usual,
            (_at_most("mean", mean, 10), _right(98)), quick=True, landscapes=100,
        ),
        Cell(
            "flake 5 %", "first", Shape(16, 2, flake=0.05), usual,
            (_at_most("mean", mean, 9.5), _right(98)), landscapes=100,
        ),
        Cell(
            "flake 20 %", "best", Shape(16, 2, flake=0.2), told,
            (_at_most("mean", mean, 16), _right(95)), landscapes=100,
        ),
        Cell(
            "flake 20 %", "first", Shape(16, 2, flake=0.2), told,
            (_at_most("mean", mean, 14), _right(95)), landscapes=100,
        ),
    ]  # fmt: skip
    for n, causes in ((8, 2), (8, 3), (12, 2)):
        shape = Shape(n=n, causes=causes, repaired=0.6)
        audit = Ours(audit=True, name="triage, proved, audit")
        found += [
            Cell("a flag repairs", "best", shape, proved, steady, n == 8, 60),
            Cell("a flag repairs", "best", shape, audit, (*steady, _right(98)), landscapes=60),
        ]
    for n in (10, 16):
        shape = Shape(n=n, causes=2, levels=4, repairs=2)
        found.append(
            Cell("numbers and repairs", "best", shape, proved, alone, n == 10, 60, peers=True)
        )
    return found


CELLS = tuple(_cells())

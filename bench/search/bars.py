"""What the search promises, as figures of the benchmark.

In:  Results. Out: Verdicts: the bar, what was measured, whether it is met.
Not: playing (runs.py) or the tables (tables.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench.search import figures
from bench.search.cells import AUDIT, CELLS, LIKELY, PROVED, TOLD, USUAL, Cell
from bench.search.play import Played, Strategy
from bench.search.rivals import HITTING_SET, ONE_AT_A_TIME, QUICKXPLAIN_STAR
from bench.search.runs import Results

Figure = Callable[[Sequence[Played]], float]
TARGET = ("plain", 16, 2)
FEW = 8  # flags from which the peers are compared


@dataclass(frozen=True, slots=True)
class Verdict:
    """One bar: `value` is `limit` at most, or at least; None if it was not played."""

    say: str
    value: float | None
    limit: float
    loose: float  # where few landscapes are played
    most: bool

    def met(self, *, quick: bool) -> bool | None:
        """Whether it holds; None if it was not played."""
        if self.value is None:
            return None
        limit = self.loose if quick else self.limit
        return self.value <= limit + 1e-9 if self.most else self.value >= limit - 1e-9


class _Bars:
    def __init__(self, results: Results) -> None:
        self.results = results

    def of(self, cell: Cell, strategy: Strategy, figure: Figure) -> float | None:
        played = self.results.get((cell.title, strategy.name))
        return figure(played) if played else None

    def ratio(self, cell: Cell, ours: Strategy, other: Strategy) -> float | None:
        own, peer = self.of(cell, ours, figures.mean), self.of(cell, other, figures.mean)
        return own / peer if own is not None and peer else None

    def under(self, cell: Cell, ours: Strategy, say: str, figure: Figure, limit: float) -> Verdict:
        value = self.of(cell, ours, figure)
        return Verdict(
            f"{cell.title}, {ours.name}: {say}", value, limit, 1.4 * limit + 1, most=True
        )

    def right(self, cell: Cell, ours: Strategy, limit: float, slack: float = 12) -> Verdict:
        value = self.of(cell, ours, figures.right)
        return Verdict(
            f"{cell.title}, {ours.name}: % right", value, limit, limit - slack, most=False
        )

    def against(self, cell: Cell, ours: Strategy, other: Strategy, limit: float) -> Verdict:
        value = self.ratio(cell, ours, other)
        say = f"{cell.title}, {ours.name}: launches over those of {other.name}"
        return Verdict(say, value, limit, 1.5 * limit, most=True)

    def targets(self) -> Iterator[Verdict]:
        """The sizes that people meet most."""
        best, _, every = (cell for cell in CELLS if _key(cell) == TARGET)
        yield self.under(best, LIKELY, "mean", figures.mean, 7.5)
        yield self.under(best, LIKELY, "median", figures.median, 8)
        yield self.under(best, LIKELY, "p90", figures.p90, 11)
        yield self.right(best, LIKELY, 98)
        yield self.under(best, PROVED, "mean", figures.mean, 9.0)
        yield self.right(best, PROVED, 100, 0)
        yield self.under(every, LIKELY, "mean", figures.mean, 14)
        yield self.right(every, LIKELY, 98)

    def peers(self) -> Iterator[Verdict]:
        """Against the strongest peers, cell by cell."""
        for cell in _plain():
            if cell.goal == "best" and cell.shape.n >= FEW:
                yield self.against(cell, PROVED, HITTING_SET, 0.60)
            elif cell.goal == "best":
                yield self.against(cell, PROVED, ONE_AT_A_TIME, 1.0)
                yield self.against(cell, LIKELY, ONE_AT_A_TIME, 1.0)
            elif cell.goal == "first" and cell.shape.n >= FEW:
                yield self.against(cell, PROVED, QUICKXPLAIN_STAR, 1.05)
        for cell in _family("good prior"):
            if cell.goal == "first":
                yield self.against(cell, PROVED, QUICKXPLAIN_STAR, 0.75)

    def misled(self) -> Iterator[Verdict]:
        """What a misleading prior costs."""
        for cell in _family("misleading prior"):
            ours: Strategy = LIKELY if cell.goal == "best" else PROVED
            shape = (cell.shape.n, cell.shape.causes)
            plain = next(
                c for c in _plain() if c.goal == cell.goal and (c.shape.n, c.shape.causes) == shape
            )
            own = self.results.get((cell.title, ours.name), [])
            same = self.results.get((plain.title, ours.name), [])
            n = min(len(own), len(same))  # the same landscapes, but for the prior
            value = figures.mean(own[:n]) / figures.mean(same[:n]) if n else None
            say = f"{cell.title}, {ours.name}: launches over those without a prior"
            yield Verdict(say, value, 1.25, 1.6, most=True)

    def outside(self) -> Iterator[Verdict]:
        """Landscapes that the model does not hold."""
        for cell in _family("causes of 4 flags"):
            yield self.right(cell, PROVED, 100, 0)
            if cell.goal == "first":
                yield self.against(cell, PROVED, QUICKXPLAIN_STAR, 1.15)
        for cell in _family("a flag repairs"):
            for ours in (PROVED, AUDIT):
                value = self.of(cell, ours, figures.starts)
                say = f"{cell.title}, {ours.name}: % of recommendations that start"
                yield Verdict(say, value, 100, 100, most=False)
                value = self.of(cell, ours, figures.kept)
                say = f"{cell.title}, {ours.name}: worth kept"
                yield Verdict(say, value, 0.99, 0.9, most=False)
            value = self.of(cell, PROVED, lambda ps: 100 * sum(p.guarded for p in ps) / len(ps))
            say = f"{cell.title}, {PROVED.name}: % of claims that say what they rest on"
            yield Verdict(say, value, 100, 100, most=False)
            yield self.right(cell, AUDIT, 98, 15)
        for cell in _family("numbers and repairs"):
            yield self.right(cell, PROVED, 100, 0)

    def flaky(self) -> Iterator[Verdict]:
        """Where launches lie."""
        limits = {("5", "best"): (10, 98), ("5", "first"): (9.5, 98)}
        limits |= {("20", "best"): (16, 95), ("20", "first"): (14, 95)}
        for share, ours in (("5", USUAL), ("20", TOLD)):
            for cell in _family(f"flake {share} %"):
                launches, right = limits[share, cell.goal]
                yield self.under(cell, ours, "mean", figures.mean, launches)
                yield self.right(cell, ours, right, 20)

    def calibration(self) -> Iterator[Verdict]:
        """Of the claims at 97 %, so many are right; missed if 95 % is above the interval."""
        for family, goal, played in self.claims():
            hits = sum(p.right for p in played)
            _, high = figures.wilson(hits, len(played))
            say = (
                f"claims at 97 %, {family}, {goal}: {hits} of {len(played)} right; upper end of "
                "the 95 % Wilson interval"
            )
            yield Verdict(say, high, 95, 95, most=False)

    def claims(self) -> Iterator[tuple[str, str, list[Played]]]:
        """By family and goal every search that ended with a claim at 97 %."""
        found: dict[tuple[str, str], list[Played]] = {}
        for cell in CELLS:
            for strategy in cell.strategies:
                played = self.results.get((cell.title, strategy.name), [])
                of = figures.claimed(played, "97%")
                found.setdefault((cell.family, cell.goal), []).extend(of)
        for (family, goal), of in found.items():
            if of:
                yield family, goal, of

    def speed(self) -> Iterator[Verdict]:
        """CPU time of a decision."""
        for n, limit in ((16, 50.0), (25, 300.0)):
            for goal in ("best", "first", "all"):
                played = [
                    p
                    for cell in _plain()
                    if cell.shape.n == n and cell.goal == goal
                    for strategy in (LIKELY, PROVED)
                    for p in self.results.get((cell.title, strategy.name), [])
                ]
                value = figures.decision_ms(played) if played else None
                say = f"plain, n={n}, {goal}: CPU ms of a decision, mean"
                yield Verdict(say, value, limit, 4 * limit, most=True)


def verdicts(results: Results) -> list[Verdict]:
    """Every bar."""
    bars = _Bars(results)
    return [
        *bars.targets(), *bars.peers(), *bars.misled(), *bars.outside(), *bars.flaky(),
        *bars.calibration(), *bars.speed(),
    ]  # fmt: skip


def _key(cell: Cell) -> tuple[str, int, int]:
    return cell.family, cell.shape.n, cell.shape.causes


def _plain() -> list[Cell]:
    return _family("plain")


def _family(name: str) -> list[Cell]:
    return [cell for cell in CELLS if cell.family == name]

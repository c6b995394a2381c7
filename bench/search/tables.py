"""Play the cells and write what came out.

In:  cells, how many landscapes each, the first seed. Out: lines of Markdown, failed gates.
Not: what is measured (cells.py).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.search.cells import Cell, kept, mean, median, p90, right
from bench.search.landscape import Landscape, draw
from bench.search.play import Played, Strategy, play
from bench.search.rivals import ALL, BEST, FIRST

HEAD = (
    "| family | n | causes | goal | strategy | launches median / p90 / mean | x ours | right "
    "| worth kept | hours, mean |\n|---|---|---|---|---|---|---|---|---|---|"
)


RIVALS: dict[str, tuple[Strategy, ...]] = {"first": FIRST, "best": BEST, "all": ALL}


@dataclass(frozen=True, slots=True)
class Row:
    """One strategy on all landscapes of a cell."""

    cell: Cell
    name: str
    played: list[Played]
    ours: float = 0.0  # our mean on the same landscapes, 0 for our own row

    def line(self) -> str:
        """The row of the table."""
        shape, p = self.cell.shape, self.played
        ratio = f"{mean(p) / self.ours:.2f}" if self.ours else ""
        worth = f"{kept(p):.3f}" if self.cell.goal == "best" else ""
        hours = sum(one.seconds for one in p) / len(p) / 3600
        return (
            f"| {self.cell.family} | {shape.n} | {shape.causes} | {self.cell.goal} | {self.name} | "
            f"{median(p):g} / {p90(p):g} / {mean(p):.1f} | {ratio} | {right(p):.1f} % | {worth} | "
            f"{hours:.2f} |"
        )


def run(
    cells: Sequence[Cell], *, most: int, first_seed: int, quick: bool
) -> tuple[list[str], list[str]]:
    """Rows of every cell, and a sentence for each gate that does not hold."""
    lines, failed = [HEAD], []
    for cell in cells:
        began = time.monotonic()
        count = min(most, cell.landscapes)
        scapes = [draw(cell.shape, first_seed + i) for i in range(count)]
        own = _row(cell, cell.ours, scapes)
        rows = [own]
        if cell.peers and not quick:
            rows += [
                replace(_row(cell, peer, scapes), ours=mean(own.played))
                for peer in RIVALS[cell.goal]
            ]
        lines += [row.line() for row in rows]
        for gate in cell.gates:
            if not gate.holds(own.played, quick=quick):
                limit = gate.loose if quick else gate.limit
                sign = "at most" if gate.most else "at least"
                failed.append(
                    f"{cell.family}, n={cell.shape.n}, {cell.shape.causes} causes, {cell.goal}, "
                    f"{cell.ours.name}: {gate.say} is {gate.of(own.played):.2f}, {sign} {limit:g} "
                    "was promised"
                )
        print(f"{rows[0].line()}  [{time.monotonic() - began:.0f} s]", file=sys.stderr, flush=True)
    return lines, failed


def _row(cell: Cell, strategy: Strategy, scapes: list[Landscape]) -> Row:
    return Row(cell, strategy.name, [play(strategy, scape, cell.goal) for scape in scapes])

"""The page of the benchmark.

In:  Results, verdicts. Out: Markdown.
Not: what is measured (cells.py) or promised (bars.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.search import figures
from bench.search.bars import Verdict
from bench.search.cells import CELLS, Cell
from bench.search.ours import Ours
from bench.search.play import Played, Strategy
from bench.search.runs import Results

HEAD = (
    "| n | causes | strategy | landscapes | launches median / p90 / mean | x ours | right "
    "| worth kept | and turned down in 2 s | hours |\n|---|---|---|---|---|---|---|---|---|---|"
)
SPEED = (
    "| n | causes | goal | strategy | CPU ms a decision, mean | slowest, 95 % of searches "
    "|\n|---|---|---|---|---|---|"
)


def page(results: Results, found: Sequence[Verdict], about: str) -> str:
    """The whole page."""
    parts = [about, "## Bars\n", *_bars(found)]
    for family, goal in dict.fromkeys((cell.family, cell.goal) for cell in CELLS):
        cells = [c for c in CELLS if (c.family, c.goal) == (family, goal)]
        rows = [row for cell in cells for row in _rows(cell, results)]
        if rows:
            parts += [f"\n## {family}: {goal}\n", HEAD, *rows]
    speed = [row for cell in CELLS for row in _speed(cell, results)]
    if speed:
        parts += ["\n## Time of a decision\n", SPEED, *speed]
    return "\n".join(parts) + "\n"


def _bars(found: Sequence[Verdict]) -> Iterator[str]:
    yield "| | bar | measured | |\n|---|---|---|---|"
    for number, verdict in enumerate(found, 1):
        said = {True: "met", False: "**missed**", None: "not played"}[verdict.met(quick=False)]
        value = "" if verdict.value is None else f"{verdict.value:.4g}"
        sign = "<=" if verdict.most else ">="
        yield f"| {number} | {verdict.say} {sign} {verdict.limit:g} | {value} | {said} |"


def _rows(cell: Cell, results: Results) -> Iterator[str]:
    own = next((s for s in reversed(cell.strategies) if isinstance(s, Ours)), None)
    base = results.get((cell.title, own.name)) if own else None
    for strategy in cell.strategies:
        played = results.get((cell.title, strategy.name))
        if played:
            yield _row(cell, strategy, played, base)


def _row(
    cell: Cell, strategy: Strategy, played: Sequence[Played], base: Sequence[Played] | None
) -> str:
    ratio = f"{figures.mean(played) / figures.mean(base):.2f}" if base else ""
    worth = f"{figures.kept(played):.3f}" if cell.goal == "best" else ""
    down = sum(p.rejected for p in played) / len(played)
    return (
        f"| {cell.shape.n} | {cell.shape.causes} | {strategy.name} | {len(played)} | "
        f"{figures.median(played):g} / {figures.p90(played):g} / {figures.mean(played):.2f} | "
        f"{ratio} | {figures.right(played):.1f} % | {worth} | {down:.1f} | "
        f"{figures.hours(played):.2f} |"
    )


def _speed(cell: Cell, results: Results) -> Iterator[str]:
    for strategy in cell.strategies:
        played = results.get((cell.title, strategy.name))
        if played and isinstance(strategy, Ours) and cell.family == "plain":
            yield (
                f"| {cell.shape.n} | {cell.shape.causes} | {cell.goal} | {strategy.name} | "
                f"{figures.decision_ms(played):.0f} | {figures.slowest_ms(played):.0f} |"
            )

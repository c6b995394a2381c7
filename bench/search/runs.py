"""Play cells in pieces: what was played before, by the same code, is not played again.

In:  cells, the first seed, a folder. Out: Results.
Not: what the figures must be (bars.py) or the page (tables.py).

A piece is one strategy on a few landscapes of one cell. Each is written down as soon as it
is played, in a file that is named after the sources: so a run that was killed goes on where
it was, and a change of the search or the benchmark begins anew.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.search.cells import CELLS, Cell
from bench.search.landscape import draw
from bench.search.play import Played, play

ROOT = Path(__file__).parents[2]
PIECE = 10  # landscapes
Results = Mapping[tuple[str, str], list[Played]]  # by title of the cell and name of the strategy


@dataclass(frozen=True, slots=True)
class Piece:
    """Landscapes `begin` to `end` of a cell, for one of its strategies."""

    cell: int  # place in CELLS
    strategy: int
    begin: int
    end: int
    seed: int

    @property
    def name(self) -> str:
        """Equal for equal work."""
        cell = CELLS[self.cell]
        name = cell.strategies[self.strategy].name
        return f"{cell.title} | {name} | {self.seed + self.begin}-{self.seed + self.end}"


def pieces(cells: Iterable[Cell], *, most: int | None, quick: bool, seed: int) -> Iterator[Piece]:
    """All the work, in the order of the cells."""
    for cell in cells:
        count = cell.quick if quick else cell.landscapes
        count = count if most is None else min(most, count)
        for s, strategy in enumerate(cell.strategies):
            if quick and strategy in cell.rivals():
                continue
            for begin in range(0, count, PIECE):
                yield Piece(CELLS.index(cell), s, begin, min(begin + PIECE, count), seed)


def work(piece: Piece) -> tuple[Piece, list[Played]]:
    """Play one piece."""
    cell = CELLS[piece.cell]
    strategy = cell.strategies[piece.strategy]
    return piece, [
        play(strategy, draw(cell.shape, piece.seed + i), cell.goal)
        for i in range(piece.begin, piece.end)
    ]


class Store:
    """What was played by these sources; a folder of its own, one line a piece."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{digest()}.jsonl"
        self.played: dict[str, list[Played]] = {}
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        for line in lines:
            try:
                found = json.loads(line)
            except ValueError:
                continue  # cut off by a kill
            self.played[found["piece"]] = [Played(**one) for one in found["played"]]

    def add(self, piece: Piece, played: list[Played]) -> None:
        """Keep a piece, on disk first."""
        line = json.dumps({"piece": piece.name, "played": [asdict(one) for one in played]})
        with self.path.open("a") as file:
            file.write(f"\n{line}\n")
        self.played[piece.name] = played


def digest() -> str:
    """A name for the sources that decide what is played: the search with all that it imports.

    What else changes in the project (a cause, a reader of logs) begins no run anew.
    """
    for path in sorted((ROOT / "triage/core/search").glob("[a-z]*.py")):
        importlib.import_module(f"triage.core.search.{path.stem}")
    files = {
        Path(module.__file__ or "")
        for name, module in list(sys.modules.items())
        if name.startswith(("triage.core.", "bench.search."))
    }
    found = hashlib.sha256()
    for path in sorted(files):
        if path.name not in {"bars.py", "tables.py", "__main__.py"}:
            found.update(path.read_bytes())
    return found.hexdigest()[:12]


def run(
    todo: Sequence[Piece], store: Store, *, jobs: int, minutes: float, say: object = print
) -> bool:
    """Play what is not in the store; False if the time ended before the work."""
    assert callable(say)
    open_ = [piece for piece in todo if piece.name not in store.played]
    end = time.monotonic() + 60 * minutes
    if jobs == 1:
        for done, piece in enumerate(open_):
            if time.monotonic() > end:
                return False
            store.add(*work(piece))
            say(f"{done + 1} of {len(open_)}: {piece.name}")
        return True
    with ProcessPoolExecutor(jobs) as pool:
        waiting = {pool.submit(work, piece) for piece in open_[: 2 * jobs]}
        begun, done = len(waiting), 0
        while waiting:
            future = next(as_completed(waiting))
            waiting.remove(future)
            piece, played = future.result()
            store.add(piece, played)
            done += 1
            say(f"{done} of {len(open_)}: {piece.name}")
            if begun < len(open_) and time.monotonic() <= end:
                waiting.add(pool.submit(work, open_[begun]))
                begun += 1
    return begun == len(open_)


def collect(todo: Iterable[Piece], store: Store) -> Results:
    """What the store holds of this work, pieces put together."""
    found: dict[tuple[str, str], list[Played]] = {}
    for piece in todo:
        cell = CELLS[piece.cell]
        played = store.played.get(piece.name)
        if played is not None:
            key = (cell.title, cell.strategies[piece.strategy].name)
            found.setdefault(key, []).extend(played)
    return found

"""`python -m bench.search`: launches and right answers of triage and its peers.

In:  --quick or --full. Out: bench/SEARCH.md; exit code 1 if a bar is missed, 3 if not all is played.
Not: a real engine; bench/search/landscape.py says what a landscape is.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from bench.search.bars import verdicts
from bench.search.cells import CELLS
from bench.search.runs import ROOT, Piece, Store, collect, pieces, run
from bench.search.tables import page

OUT = ROOT / "bench/SEARCH.md"
FOLDER = ROOT / "bench/.search"
FRESH = 100_000  # no tuning saw seeds from here on
QUICK = 50_000  # what CI plays again and again is not what the page reports
UNFINISHED = 3
ABOUT = """# Launches of a search, simulated

Written by `make bench-search` on {date}, at commit {commit}; seeds from {seed} on, which no tuning saw.

Launches are counted without two facts that are free: the baseline starts; what is wanted fails, and as what. What the engine
turns down in 2 s, before it reads a weight, is no launch of minutes: it has a column of its own (docs/decisions/017). "Right" is held against the truth of the
landscape: for `best` the configuration starts and none is worth more, for `first` the set is a smallest failing one with its failure's name, for
`all` they are exactly all. Peers tell no failure from another: theirs is right if the sets are. `x ours` is the mean over that of our last row of the cell.
Landscapes are drawn as `bench/search/landscape.py` says. **What a landscape looks like is an assumption: nothing here was run against a real engine.**
picire is the real package; the other peers are written from their papers. A prior changes what is believed, not the landscapes.
"""


def main() -> int:
    """Play what is not played yet, print, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.search")
    parser.add_argument("--quick", action="store_true", help="a few cells, loose gates, no file")
    parser.add_argument("--full", action="store_true", help="every cell (the default)")
    parser.add_argument("--landscapes", type=int, help="at most so many a cell")
    parser.add_argument("--seed", type=int, help="the first seed")
    parser.add_argument("--only", default="", help="cells whose title holds this text")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--minutes", type=float, default=600, help="begin nothing after so long; run again to go on"
    )
    parser.add_argument("--page", action="store_true", help="write the page from what was played")
    options = parser.parse_args()
    seed = options.seed or (QUICK if options.quick else FRESH)
    cells = [cell for cell in CELLS if options.only in cell.title]
    todo = list(pieces(cells, most=options.landscapes, quick=options.quick, seed=seed))
    with tempfile.TemporaryDirectory() as scratch:
        store = Store(Path(scratch) if options.quick else FOLDER)
        minutes = 0.0 if options.page else options.minutes
        done = run(todo, store, jobs=options.jobs, minutes=minutes, say=_say)
        results = collect(todo, store)
    found = verdicts(results)
    if options.quick:
        found = [verdict for verdict in found if verdict.value is not None]
    text = page(results, found, _about(seed) + _stopped(todo, store))
    print(text)
    missed = [v.say for v in found if v.met(quick=options.quick) is False]
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    if not options.quick and not options.only and (done or options.page):
        OUT.write_text(text)
    if not done:
        print("not all is played: run again to go on", file=sys.stderr)
        return UNFINISHED
    return 1 if missed else 0


def _about(seed: int) -> str:
    git = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    return ABOUT.format(
        date=datetime.now(UTC).date().isoformat(), commit=commit or "unknown", seed=seed
    )


def _stopped(todo: list[Piece], store: Store) -> str:
    """That the page rests on less than it should, if it does."""
    made = sum(piece.name in store.played for piece in todo)
    if made == len(todo):
        return ""
    return (
        f"\nThe run was stopped: {made} of {len(todo)} pieces (ten landscapes, one way to search) "
        "were played. The column `landscapes` says how many stand behind each row; a mean over 10 "
        "or 20 of them is uncertain by about one launch. `make bench-search` plays the rest.\n"
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

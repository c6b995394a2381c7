"""`python -m bench.search`: launches and right answers of triage and its peers.

In:  --quick or --full. Out: bench/SEARCH.md and the exit code 1 if a promise is broken.
Not: a real engine; bench/search/landscape.py says what a landscape is.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.search.cells import CELLS
from bench.search.tables import run

OUT = Path(__file__).parents[1] / "SEARCH.md"
FRESH = 70_000  # no tuning saw seeds from here on
ABOUT = """# Launches of a search, simulated

Written by `make bench-search`; `make bench-search-quick` plays a part of it with loose gates and writes nothing.

Launches are counted without two facts that are free: the baseline starts; what is wanted fails, and as what. A launch that the
engine turns down in 2 s counts like any other. "Right" is held against the truth of the landscape: for `best` the configuration starts
and none is worth more, for `first` the set is a smallest failing one with its failure's name, for `all` they are exactly all. Landscapes are
drawn as `bench/search/landscape.py` says, {count} a cell at most, seeds from {seed} on. **What a landscape looks like is an assumption: nothing
here was run against a real engine.**

"""


def main() -> int:
    """Play, print, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.search")
    parser.add_argument("--quick", action="store_true", help="a few cells, loose gates, no file")
    parser.add_argument("--full", action="store_true", help="every cell (the default)")
    parser.add_argument("--landscapes", type=int, default=None, help="at most so many a cell")
    parser.add_argument("--seed", type=int, default=FRESH, help="the first seed")
    parser.add_argument("--only", default="", help="cells whose family and goal hold this text")
    options = parser.parse_args()
    most = options.landscapes or (12 if options.quick else 200)
    cells = [cell for cell in CELLS if cell.quick or not options.quick]
    cells = [c for c in cells if options.only in f"{c.family} n={c.shape.n} {c.goal}"]
    lines, failed = run(cells, most=most, first_seed=options.seed, quick=options.quick)
    page = ABOUT.format(count=most, seed=options.seed) + "\n".join(lines) + "\n"
    page += "\n## Promises that do not hold\n\n"
    page += "\n".join(f"- {line}" for line in failed) + "\n" if failed else "None.\n"
    print(page)
    if not options.quick and not options.only:
        OUT.write_text(page)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

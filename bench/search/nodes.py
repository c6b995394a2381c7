"""`python -m bench.search.nodes`: what more nodes save, on simulated landscapes, in bench/NODES.md.

In:  landscapes, how many launches at the same time. Out: launches, hours until the answer.
Not: a real engine, or another way to search (__main__.py).

Time is that of bench/search/landscape.py: a launch takes as many seconds as its ending. An answer
is used when it comes; what is in flight when the search ends is ended, and counted as a launch.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import heappop, heappush
from pathlib import Path
from statistics import mean, median

from bench.search.landscape import Answer, Landscape, Shape, draw
from bench.search.problem import entry_of, mask_of, problem_of
from triage.core.search.plan import next_trials
from triage.core.search.recommend import best_started
from triage.core.trials import Done, Entry, Trial

ROOT = Path(__file__).parents[2]
OUT = ROOT / "bench/NODES.md"
SEED = 90_000  # no tuning saw seeds from here on
SHAPES = (Shape(8, 2), Shape(16, 2))
NODES = (1, 2, 4)
ABOUT = """# Launches at the same time, simulated

Written by `python -m bench.search.nodes` on {date}, at commit {commit}; {count} landscapes a row, seeds from {seed} on, which no tuning saw.

Goal `best`, until it is proved. Unlike `bench/SEARCH.md` the launches hold the two ends, baseline and all that is wanted. An answer is used when
it comes; a launch that still runs when the search ends is ended, and counts. Hours are those of the landscape's clock: a start takes 400 s, a failure 70 to
600 s. **What a landscape looks like is an assumption: nothing here was run against a real engine.**

| flags | causes | nodes | launches mean | hours until the answer, mean | median | of one node | right |
|---|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One search: its launches, seconds until its answer, and whether that is right."""

    launches: int
    seconds: float
    right: bool


def at_once(scape: Landscape, k: int, *, goal: str = "best", stop: str = "proved") -> Run:
    """Search a landscape with `k` nodes, as a session does."""
    problem = problem_of(scape, goal, stop=stop)
    journal: list[Entry] = []
    flying: list[tuple[float, int, Trial, Answer]] = []
    now, launches = 0.0, 0
    while True:
        inside = [trial.items for _, _, trial, _ in flying]
        assert len(set(inside)) == len(inside) <= k
        step = next_trials(problem, journal, k - len(flying), inside) if k > len(flying) else ()
        if isinstance(step, Done):
            break
        for trial in step:
            launches += 1
            answer = scape.launch(mask_of(scape, trial.items))
            heappush(flying, (now + answer.seconds, launches, trial, answer))
        now, number, trial, answer = heappop(flying)
        journal.append(entry_of(number, trial, answer))
    best = mask_of(scape, best_started(problem, journal))
    return Run(launches, now, scape.value(best) == scape.best_value())


def main() -> int:
    """Play, print, write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.search.nodes")
    parser.add_argument("--landscapes", type=int, default=40, help="a row")
    parser.add_argument("--write", action="store_true", help=f"write {OUT.name}")
    options = parser.parse_args()
    git = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    text = ABOUT.format(
        date=datetime.now(UTC).date(), commit=commit, count=options.landscapes, seed=SEED
    )
    for shape in SHAPES:
        alone = 0.0
        for k in NODES:
            runs = [at_once(draw(shape, SEED + i), k) for i in range(options.landscapes)]
            hours = [run.seconds / 3600 for run in runs]
            alone = alone or mean(hours)
            text += (
                f"| {shape.n} | {shape.causes} | {k} | {mean(r.launches for r in runs):.1f} | "
                f"{mean(hours):.2f} | {median(hours):.2f} | {mean(hours) / alone:.0%} | "
                f"{sum(r.right for r in runs) / len(runs):.0%} |\n"
            )
            print(text.splitlines()[-1], file=sys.stderr, flush=True)
    print(text)
    if options.write:
        OUT.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m bench.search.few`: the fewest launches that up to four flags can take, at best.

In:  landscapes of four flags without `requires`. Out: one line for each number of causes.
Not: triage's planner; whoever searches so is told how many causes there are and how likely
     each pattern of failures is, and hears only that a launch starts or fails.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from bench.search.landscape import Landscape, Shape, draw
from bench.search.play import play
from bench.search.rivals import ONE_AT_A_TIME
from triage.core.search.exact import Game, Policy

N, DRAWS, LANDSCAPES = 4, 4000, 25
SEED, OTHERS = 1000, 200_000  # of the landscapes; of those that say how likely a pattern is


def pattern(scape: Landscape) -> int:
    """Bit m is set if the set m fails."""
    return sum(1 << m for m in range(1 << N) if any(f.flags & ~m == 0 for f in scape.faults))


def fewest(worth: tuple[int, ...], patterns: Counter[int]) -> float:
    """Launches until the best set is proved, on average, if the ends are known."""
    values = [float(sum(w for j, w in enumerate(worth) if m >> j & 1)) for m in range(1 << N)]
    shares = [count / patterns.total() for count in patterns.values()]
    ends = {0, (1 << N) - 1}
    policy = Policy(Game(values, list(patterns), ends, 1.0), shares)
    return policy.solve((1 << len(patterns)) - 1, 0.0)[0]


def main() -> None:
    """Print the table."""
    print("| causes | fewest, always right | one flag at a time | right |")
    print("|---|---|---|---|")
    for causes in (1, 2, 3):
        shape = Shape(n=N, causes=causes)
        patterns = Counter(pattern(draw(shape, OTHERS + i)) for i in range(DRAWS))
        scapes = [draw(shape, SEED + i) for i in range(LANDSCAPES)]
        least = sum(fewest(scape.worth, patterns) for scape in scapes) / len(scapes)
        plain = [replace(scape, requires=(), known=()) for scape in scapes]
        other = [play(ONE_AT_A_TIME, scape, "best") for scape in plain]
        mean = sum(p.launches for p in other) / len(other)
        right = 100 * sum(p.right for p in other) / len(other)
        print(f"| {causes} | {least:.2f} | {mean:.2f} | {right:.0f} % |")


if __name__ == "__main__":
    main()

"""One strategy on one landscape: launches are counted, the answer is held against the truth.

In:  a Landscape, a goal, a Strategy. Out: Played.
Not: drawing landscapes (landscape.py) or tables (tables.py).

Two facts are free and not counted: the baseline starts; what is wanted fails, and as what.
A launch that the engine turns down in 2 s is counted apart: no weights were loaded for it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Protocol

from bench.search.landscape import Answer, Landscape

CAP = 400  # launches; a strategy that is not done by then counts as wrong


class CapPassed(Exception):  # noqa: N818  it is no error: the strategy is cut off
    """The strategy asked for more launches than a search may take."""


@dataclass(slots=True)
class Oracle:
    """What a strategy may ask: launches, and what the user would know without any.

    A strategy reads `scape` only for `n`, `worth`, `known`, `full`, `base`, `repairs`,
    `suspicion`, and the helpers that follow from them.
    """

    scape: Landscape
    luck: random.Random
    launches: int = 0
    seconds: float = 0.0
    asked: dict[int, list[Answer]] = field(default_factory=dict)

    @property
    def wanted(self) -> Answer:
        """How the launch of all that is wanted failed; free."""
        return self.scape.launch(self.scape.full)

    def launch(self, mask: int) -> Answer:
        """Launch a set of flags: a count, some seconds, an answer (with the landscape's luck)."""
        if self.launches >= CAP:
            raise CapPassed
        answer = self.scape.launch(mask, self.luck if self.scape.flake else None)
        self.launches += 1
        self.seconds += answer.seconds
        self.asked.setdefault(mask, []).append(answer)
        return answer

    def rejected(self) -> int:
        """How many launches the engine turned down."""
        return sum(a.kind == "rejected" for answers in self.asked.values() for a in answers)


@dataclass(frozen=True, slots=True)
class Found:
    """A strategy's answer: for `best` a set that started, for the others (set, name) pairs.

    `name` None: the strategy tells no failure from another.
    """

    best: int | None = None
    sets: frozenset[tuple[int, str | None]] = frozenset()
    level: str = ""  # ours: how surely, and the sentence that says so
    say: str = ""
    decisions: int = 0  # ours: how many, and their CPU time, in all and of the slowest
    deciding_s: float = 0.0
    slowest_s: float = 0.0


class Strategy(Protocol):
    """A way to search; `ask` must be the same for the same answers."""

    @property
    def name(self) -> str:
        """How the tables call it."""
        ...

    def ask(self, oracle: Oracle, goal: str) -> Found:
        """Search until the goal is reached: first, best or all."""
        ...


@dataclass(frozen=True, slots=True)
class Played:
    """One strategy on one landscape."""

    launches: int  # without those that the engine turned down
    seconds: float
    right: bool
    kept: float = 0.0  # worth of the answer as a share of the best possible; goal best
    starts: bool = True  # the recommended set starts; goal best
    rejected: int = 0  # launches that the engine turned down in 2 s, on top of `launches`
    level: str = ""
    guarded: bool = True  # a claim of `proved` says what it rests on
    decisions: int = 0
    deciding_s: float = 0.0
    slowest_s: float = 0.0


def play(strategy: Strategy, scape: Landscape, goal: str) -> Played:
    """Let the strategy search, and judge its answer."""
    oracle = Oracle(scape, random.Random(f"luck/{scape.seed}"))
    try:
        found = strategy.ask(oracle, goal)
    except CapPassed:
        down = oracle.rejected()
        return Played(
            oracle.launches - down, oracle.seconds, right=False, starts=False, rejected=down
        )
    return judge(oracle, goal, found)


GUARD = "if adding a flag never repairs"


def judge(oracle: Oracle, goal: str, found: Found) -> Played:
    """The answer against the truth."""
    scape = oracle.scape
    kept, starts = 0.0, True
    if goal == "best":
        mask = scape.base if found.best is None else found.best
        starts = scape.launch(mask).kind == "starts"
        best, value = scape.best_value(), scape.value(mask)
        kept = value / best if best else 1.0
        right = starts and value == best
    elif goal == "first":
        right = any(_is_set(scape, mask, name) for mask, name in found.sets)
    else:
        truth = scape.observable()
        if any(name is None for _, name in found.sets):  # a strategy without classes: sets only
            right = {mask for mask, _ in found.sets} == {mask for mask, _ in truth}
        else:
            right = found.sets == truth
    down = oracle.rejected()
    return Played(
        oracle.launches - down,
        round(oracle.seconds, 1),
        right=right,
        kept=kept,
        starts=starts,
        rejected=down,
        level=found.level,
        guarded=found.level != "proved" or GUARD in found.say,
        decisions=found.decisions,
        deciding_s=round(found.deciding_s, 4),
        slowest_s=round(found.slowest_s, 4),
    )


def _is_set(scape: Landscape, mask: int, name: str | None) -> bool:
    if name is not None:
        return scape.shows(mask, name)
    if scape.launch(mask).kind != "fails":
        return False
    return all(
        scape.launch(scape.without(mask, i)).kind == "starts"
        for i in range(scape.n)
        if mask >> i & 1
    )

"""A landscape as triage's own planner sees it: a Problem, and Entries for its answers.

In:  Landscape, Answer. Out: Problem, Entry.
Not: the truth of the landscape; a problem holds what a user would know.
"""

from __future__ import annotations

from bench.search.landscape import Answer, Landscape
from triage.core.config import Config, SetFlag
from triage.core.trials import Entry, Item, Noise, Problem, Seen, Trial


def key(flag: int) -> str:
    """The item's key of a bit."""
    return f"f{flag:02d}"


def problem_of(
    scape: Landscape, goal: str, *, stop: str, noise: Noise | None = None, audit: bool = False
) -> Problem:
    """What a user would know of the landscape; repairs stand outside the wanted items."""
    items = [
        Item(key=key(i), change=SetFlag(key(i), value=True), weight=float(scape.worth[i]))
        for i in range(scape.n)
    ]
    wanted = tuple(item for i, item in enumerate(items) if not scape.repairs >> i & 1)
    repairs = tuple(item for i, item in enumerate(items) if scape.repairs >> i & 1)
    suspicion = tuple((key(i), weight) for i, weight in enumerate(scape.suspicion) if weight != 1)
    return Problem(
        name="bench",
        baseline=Config.of({"model-path": "m"}),
        items=wanted,
        repairs=repairs,
        requires=tuple((key(a), key(b)) for a, b in scape.known),
        goal=goal,
        stop=stop,
        audit=audit,
        noise=noise or Noise(),
        suspicion=suspicion,
        budget_trials=10_000,
        budget_s=1e9,
    )


def mask_of(scape: Landscape, keys: frozenset[str]) -> int:
    """The bit mask of a trial's items."""
    mask = 0
    for i in range(scape.n):
        used = key(i) in keys
        if used != bool(scape.repairs >> i & 1):
            mask |= 1 << i
    return mask


def entry_of(number: int, trial: Trial, answer: Answer) -> Entry:
    """The journal's line about a launch."""
    return Entry(
        number=number,
        items=trial.items,
        seen=Seen.STARTS if answer.kind == "starts" else Seen.FAILS,
        why=trial.why,
        searching=trial.searching,
        signature=answer.name or None,
        cause=answer.name or None,
        phase=answer.phase or "serving",
        seconds=answer.seconds,
        early=answer.kind == "rejected",
        suspects=tuple(key(i) for i in answer.pair) if answer.pair else (),
    )

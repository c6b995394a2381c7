"""The next launches as a tree: what is launched, and what follows each answer.

In:  a Problem and its journal. Out: lines.
Not: choosing the launches (plan.py), or launching.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from triage.core.search.belief import belief_of
from triage.core.search.explain import what
from triage.core.search.journal import read_journal
from triage.core.search.plan import next_trials
from triage.core.trials import Done, Entry, Problem, Seen, Trial

WIDTH = 80
LIKELY = 0.03  # an answer less likely than this is no branch
LEAST = 24  # columns of text, however deep
NAMES = "ABCDEFGHIJ"


def decision_lines(
    problem: Problem, depth: int = 4, journal: Sequence[Entry] = (), *, width: int = WIDTH
) -> tuple[str, ...]:
    """The next `depth` launches with the answers that each may give, and how likely each is.

    Failures that nobody has seen are called A, B, ... Lines have no trailing space and, but
    for names that are longer, at most `width` columns.
    """
    return tuple(_drawn("", "", _node(problem, tuple(journal), depth), width))


class _Node(NamedTuple):
    """What is said of a step, and of each answer to it the label and the step that follows."""

    say: str
    answers: tuple[tuple[str, _Node], ...] = ()


def _node(problem: Problem, journal: tuple[Entry, ...], depth: int) -> _Node:
    step = next_trials(problem, journal)
    if isinstance(step, Done):
        return _Node(f"end: {step.say}")
    trial = step[0]
    said = f"launch {len(journal) + 1}: {what(problem, trial.items)}"
    if depth <= 1:
        return _Node(said)
    return _Node(
        said,
        tuple(
            (label, _node(problem, (*journal, entry), depth - 1))
            for label, entry in _answers(problem, journal, trial)
        ),
    )


def _answers(
    problem: Problem, journal: tuple[Entry, ...], trial: Trial
) -> Iterator[tuple[str, Entry]]:
    """The answers that the launch may give: how it is called, and what the journal would hold."""
    number = len(journal) + 1
    known = list(dict.fromkeys(e.signature for e in journal if e.signature))
    new = next(name for name in NAMES if name not in known)
    started = Entry(number=number, items=trial.items, seen=Seen.STARTS)
    chances = _chances(problem, journal, trial)
    if chances is None:
        yield "starts", started
        for shown in known:
            yield f"fails with {shown}", _failed(started, shown)
        yield (
            (f"fails with {new}, a new failure" if known else f"fails ({new})"),
            _failed(started, new),
        )
        return
    for name, chance in chances:
        if chance < LIKELY:
            continue
        if name == "":
            yield f"starts, {chance:.0%}", started
        elif name is None:
            yield f"fails with {new}, a new failure, {chance:.0%}", _failed(started, new)
        else:
            yield f"fails with {name}, {chance:.0%}", _failed(started, name)


def _failed(started: Entry, name: str) -> Entry:
    return Entry(number=started.number, items=started.items, seen=Seen.FAILS, signature=name)


def _chances(
    problem: Problem, journal: tuple[Entry, ...], trial: Trial
) -> list[tuple[str | None, float]] | None:
    """("" starts, a failure's name, None a new failure) -> how likely; None: nobody knows."""
    if not any(e.seen is Seen.FAILS for e in journal):
        return None
    belief = belief_of(read_journal(problem, journal))
    if not belief.explained:
        return None
    h, names = belief.hypotheses, belief.evidence.names
    mask = np.array([belief.space.mask(trial.items)], dtype=np.uint64)
    found: dict[str | None, float] = {}
    for code, weight in zip(h.outcomes(mask)[0].tolist(), h.weight.tolist(), strict=True):
        name: str | None = "" if code == 0 else names[code - 1] if code <= len(names) else None
        found[name] = found.get(name, 0.0) + weight
    return sorted(found.items(), key=lambda one: (one[0] != "", -one[1]))


def _drawn(first: str, rest: str, node: _Node, width: int) -> Iterator[str]:
    """The step's words behind `first`, then its answers; later lines begin with `rest`."""
    said, answers = node
    hang = rest + ("│    " if answers else "     ")
    yield from textwrap.wrap(
        said,
        max(width, len(rest) + LEAST),
        initial_indent=first,
        subsequent_indent=hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for place, (label, then) in enumerate(answers, 1):
        last = place == len(answers)
        mark, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        words = f"{label} → {then.say}"
        yield from _drawn(rest + mark, rest + below, _Node(words, then.answers), width)

"""What follows from a root: consequences, teardown, and lines that mislead.

In:  the root, the candidates and the evidence. Out: line numbers, and decoys with a reason.
Not: choosing the root (cascade.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from triage.core.causes import Cause, Role
from triage.core.log.candidates import Candidate
from triage.core.log.endings import Ending
from triage.core.log.evidence import Generation
from triage.core.log.ranks import resolved

MOST = 200  # line numbers given of a sort


def consequences(
    root: Candidate | None,
    same: Sequence[Candidate],
    everything: Sequence[Candidate],
    generation: Generation,
    causes: Sequence[Cause],
) -> tuple[int, ...]:
    """Lines of failures that follow from the root; without one, those of every end."""
    lines = {
        (line.number, line.rank)
        for kind in (Ending.DEATH, Ending.SURVIVOR, Ending.ABORT)
        for line, _ in generation.of(kind)
    }
    lines |= {
        (hit.line.number, hit.line.rank)
        for hit in generation.all_hits()
        if causes[hit.cause].role is Role.CASCADE
    }
    own = {c.line for c in same}
    chain = {tb.line for c in same if c.tb for tb in c.tb.chain()}
    survived = {c.line for c in everything if c.passed and c.tb is not None}
    for tb in generation.tracebacks:
        benign = any(causes[index].role is Role.BENIGN for index, _, _ in tb.matched)
        if root is not None and tb.line and tb.line not in own | chain | survived and not benign:
            lines.add((tb.line, tb.rank))
    lines |= {(c.line, c.rank) for c in everything if c.noise and c.cause and c.tb is None}
    if root is not None:
        # A consequence cannot come before its reason in what one process prints.
        lines = {
            (number, rank)
            for number, rank in lines
            if number > root.line
            or (resolved(rank, generation.tags) != root.rank and number != root.line)
        } - {(c.line, c.rank) for c in same}
    return tuple(sorted({number for number, _ in lines} - own))[:MOST]


def teardown(
    root: Candidate | None,
    cascade: tuple[int, ...],
    generation: Generation,
    causes: Sequence[Cause],
) -> tuple[int, ...]:
    """Lines of the shutdown itself, after the root."""
    start = root.line if root else min(cascade, default=0)
    numbers = {line.number for line, _ in generation.of(Ending.TEARDOWN)}
    for kind in (Ending.STOP, Ending.SIGNALLED):
        numbers |= {line.number for line, _ in generation.of(kind)}
    numbers |= {
        hit.line.number for hit in generation.all_hits() if causes[hit.cause].role is Role.TEARDOWN
    }
    return tuple(sorted(n for n in numbers if n > start and n not in cascade))[:MOST]


def decoys(
    generation: Generation, causes: Sequence[Cause], root: Candidate | None
) -> tuple[tuple[int, str], ...]:
    """Printed advice, with the reason why it is no evidence."""
    found: dict[int, str] = {}
    for hit in generation.all_hits():
        if causes[hit.cause].role is Role.ADVICE:
            found.setdefault(hit.line.number, causes[hit.cause].title)
    for tb in generation.tracebacks:
        for index, number, _ in tb.matched:
            if causes[index].role is Role.ADVICE:
                found.setdefault(number, causes[index].title)
        for place, text in enumerate(tb.more):
            if text.startswith(("Possible solutions:", "Possible suggestions:")):
                number = min(tb.line + 1 + place, max(tb.line, tb.last))  # one line may hold all
                found.setdefault(number, "this advice is printed after any failure in capture")
    for line, _ in generation.of(Ending.ADVICE):
        found.setdefault(line.number, "general advice, printed whatever the reason was")
    if root is not None:
        found.pop(root.line, None)
    return tuple(sorted(found.items()))[:20]

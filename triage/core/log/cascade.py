"""The root of a failure among the lines that could be it, and what it explains.

In:  a Generation and the causes. Out: Finding: the root, its ranks, consequences, decoys.
Not: outcome, suspects and remedies (diagnose.py).

The order is lexicographic: no noise; nothing that the rank survived; nothing that
another explains or that yields to another; named before unnamed; certain ends before
logged ones; local faults before broken connections; then the first in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from triage.core.causes import Cause, Role
from triage.core.diagnosis import Explained, Weighed
from triage.core.log.candidates import Candidate, candidates
from triage.core.log.endings import BIND, Ending
from triage.core.log.evidence import Generation

MOST = 200  # line numbers given of a sort
_SAID = 12  # candidates named of a step


@dataclass(frozen=True, slots=True)
class Finding:
    """The root and what hangs together with it.

    `same` are the candidates with the root's signature, the root among them;
    `others` the causes that would explain the log less well, best first;
    `explain` says for each step what it left out.
    """

    root: Candidate | None = None
    same: tuple[Candidate, ...] = ()
    others: tuple[Candidate, ...] = ()
    cascade: tuple[int, ...] = ()
    teardown: tuple[int, ...] = ()
    decoys: tuple[tuple[int, str], ...] = ()
    explain: tuple[Explained, ...] = ()


@dataclass(slots=True)
class _Ranking:
    """The candidates that are left, and how they came to be."""

    left: list[Candidate]
    steps: list[Explained] = field(default_factory=list)

    def drop(self, why: str, gone: Callable[[Candidate], bool]) -> None:
        """Leave out what `gone` holds for."""
        self.remove(why, [c for c in self.left if gone(c)])

    def remove(self, why: str, dropped: Sequence[Candidate]) -> None:
        """Leave out these."""
        if dropped:
            self.left = [c for c in self.left if c not in dropped]
            self.say(why, dropped)

    def say(self, step: str, concerned: Sequence[Candidate]) -> None:
        """Remember a step, and the lines that it is about."""
        lines = tuple(_weighed(c) for c in concerned[:_SAID])
        self.steps.append(Explained(step=step, lines=lines, count=len(concerned)))


def find(generation: Generation, causes: Sequence[Cause], *, cleared: int) -> Finding:
    """The root among all candidates.

    Args:
        generation: What the log shows.
        causes: By index, as the matches name them.
        cleared: The server was ready at this line: what was only logged before it did
            no harm. 0 if it never was.
    """
    everything = candidates(generation, causes)
    ranking = _Ranking(list(everything))
    ranking.say("candidates", everything)
    ranking.drop("a consequence, or harmless", lambda c: c.noise)
    before = list(ranking.left)
    ranking.drop("the rank went on after it", lambda c: c.passed)
    ranking.drop(
        "the server was ready after it",
        lambda c: c.line < cleared and c.strength > 0 and BIND not in c.text,
    )
    _yield(ranking, before)
    _yield_to_kernels(ranking, generation)
    _explain(ranking)
    best: dict[int, int] = {}
    for c in ranking.left:
        best[c.chain] = min(c.place, best.get(c.chain, c.place))
    ranking.drop(
        "another exception of its chain says more",
        lambda c: c.chain > 0 and c.place > best[c.chain],
    )
    _prefer_tracebacks(ranking)
    if not ranking.left:
        return _finish(None, everything, ranking, generation, causes)
    certain = any(c.cause is None and c.strength == 0 for c in ranking.left)
    ranking.left.sort(key=lambda c: _key(c, certain=certain))
    return _finish(ranking.left[0], everything, ranking, generation, causes)


def _key(c: Candidate, *, certain: bool) -> tuple[object, ...]:
    return (
        c.cause is None,
        c.communication,
        c.strength if certain or c.cause is None else min(c.strength, 1),
        c.line,
        -c.specific,
        -sum(map(len, c.captures.values())),
    )


def _yield(ranking: _Ranking, before: Sequence[Candidate]) -> None:
    """A cause gives way to those that it names, also where their line was survived."""
    for c in list(ranking.left):
        if c.cause is None or not c.cause.yields_to:
            continue
        winners = [w for w in before if w.cause and w.cause.id in c.cause.yields_to]
        if winners:
            ranking.remove(f"gives way to {winners[0].signature}", [c])
            if not any(w in ranking.left for w in winners):
                ranking.left.append(winners[0])


def _yield_to_kernels(ranking: _Ranking, generation: Generation) -> None:
    """A fault that shows late gives way to an earlier line of its rank that blames a kernel."""
    for c in list(ranking.left):
        if c.cause is None or not c.cause.yields_to_kernels:
            continue
        few = generation.kernels.get(c.rank)
        earlier = [line for line in (few.all() if few else []) if line.number < _start(c)]
        if not earlier:
            continue
        blamed = earlier[0]
        ranking.remove(f"line {blamed.number} blames a kernel before it", [c])
        if not any(o.line == blamed.number for o in ranking.left):
            ranking.left.append(
                Candidate(
                    line=blamed.number, offset=blamed.offset, rank=blamed.rank, time=blamed.time,
                    text=blamed.text, phase=c.phase, strength=0,
                )
            )  # fmt: skip


def _start(c: Candidate) -> int:
    """The first line of the failure: of its whole chain, if it has one."""
    return min((tb.head for tb in c.tb.chain()), default=c.line) if c.tb else c.line


def _explain(ranking: _Ranking) -> None:
    """What a named cause explains is its consequence."""
    explained = {
        name: c.cause.id for c in ranking.left if c.cause is not None for name in c.cause.explains
    }
    ranking.drop(
        "explained by another cause",
        lambda c: (
            c.cause is not None and c.cause.id in explained and explained[c.cause.id] != c.cause.id
        ),
    )


def _prefer_tracebacks(ranking: _Ranking) -> None:
    """Of one cause's lines, the exception that ended the process says more than a log line."""
    with_exception = {c.cause.id for c in ranking.left if c.cause and c.tb and c.strength == 0}
    ranking.drop(
        "the same cause has an exception",
        lambda c: c.cause is not None and c.tb is None and c.cause.id in with_exception,
    )


def _finish(
    root: Candidate | None,
    everything: Sequence[Candidate],
    ranking: _Ranking,
    generation: Generation,
    causes: Sequence[Cause],
) -> Finding:
    same: list[Candidate] = []
    others: dict[str, Candidate] = {}
    if root is not None:
        mark = root.signature
        same = sorted((c for c in ranking.left if c.signature == mark), key=lambda c: c.line)
        ranking.say("root", [root])
        for c in ranking.left:
            if c.cause is not None and c.signature != mark:
                others.setdefault(c.cause.id, c)
    cascade = _consequences(root, same, everything, generation, causes)
    return Finding(
        root=root,
        same=tuple(same),
        others=tuple(others.values()),
        cascade=cascade,
        teardown=_teardown(root, cascade, generation, causes),
        decoys=_decoys(generation, causes, root),
        explain=tuple(ranking.steps),
    )


def _consequences(
    root: Candidate | None,
    same: Sequence[Candidate],
    everything: Sequence[Candidate],
    generation: Generation,
    causes: Sequence[Cause],
) -> tuple[int, ...]:
    lines = {
        (line.number, line.rank)
        for kind in (Ending.DEATH, Ending.SURVIVOR)
        for line, _ in generation.of(kind)
    }
    lines |= {
        (hit.line.number, hit.line.rank)
        for hit in generation.all_hits()
        if causes[hit.cause].role is Role.CASCADE
    }
    own = {c.line for c in same}
    chain = {tb.line for c in same if c.tb for tb in c.tb.chain()}
    for tb in generation.tracebacks:
        benign = any(causes[index].role is Role.BENIGN for index, _, _ in tb.matched)
        if root is not None and tb.line and tb.line not in own | chain and not benign:
            lines.add((tb.line, tb.rank))
    lines |= {(c.line, c.rank) for c in everything if c.noise and c.cause and c.tb is None}
    if root is not None:
        # A consequence cannot come before its reason in what one process prints.
        lines = {
            (number, rank)
            for number, rank in lines
            if number > root.line or (rank != root.rank and number != root.line)
        } - {(c.line, c.rank) for c in same}
    return tuple(sorted({number for number, _ in lines} - own))[:MOST]


def _teardown(
    root: Candidate | None,
    cascade: tuple[int, ...],
    generation: Generation,
    causes: Sequence[Cause],
) -> tuple[int, ...]:
    start = root.line if root else min(cascade, default=0)
    numbers = {line.number for line, _ in generation.of(Ending.TEARDOWN)}
    numbers |= {line.number for line, _ in generation.of(Ending.STOP)}
    numbers |= {
        hit.line.number for hit in generation.all_hits() if causes[hit.cause].role is Role.TEARDOWN
    }
    return tuple(sorted(n for n in numbers if n > start and n not in cascade))[:MOST]


def _decoys(
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
                found.setdefault(
                    tb.line + 1 + place, "this advice is printed after any failure in capture"
                )
    for line, _ in generation.of(Ending.ADVICE):
        found.setdefault(line.number, "general advice, printed whatever the reason was")
    if root is not None:
        found.pop(root.line, None)
    return tuple(sorted(found.items()))[:20]


def resolved(rank: str, tags: set[str]) -> str:
    """A device or global rank as the tag of its process, where the tags tell."""
    for kind in ("gpu=", "gpu_id=", "gpu", "rank"):
        number = rank.removeprefix(kind)
        if number != rank and number.isdigit():
            owners = [tag for tag in tags if tag.split()[0] == f"TP{number}"]
            return owners[0] if len(owners) == 1 else ("main" if kind == "gpu" else rank)
    return rank


def with_ranks_resolved(finding: Finding, tags: set[str]) -> Finding:
    """The finding with every rank under the tag of its process."""
    for c in {id(c): c for c in (*finding.same, *finding.others)}.values():
        c.rank = resolved(c.rank, tags)
    return replace(finding)


def _weighed(c: Candidate) -> Weighed:
    return Weighed(line=c.line, rank=c.rank, what=c.cause.id if c.cause else c.text[:100])

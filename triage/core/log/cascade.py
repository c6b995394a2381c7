"""The root of a failure among the lines that could be it.

In:  a Generation and the causes. Out: Finding: the root, its ranks, consequences, decoys.
Not: outcome, suspects and remedies (diagnose.py); what follows from a root (consequences.py).

The order is lexicographic: no noise; nothing that the rank survived; nothing that
another explains or that yields to another; the odd rank out before its peers; named
before unnamed; certain ends before logged ones; local faults before broken
connections; then the first. What only shows that a rank is lost counts if nothing else is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from triage.core.causes import Cause
from triage.core.diagnosis import Explained
from triage.core.log.authors import silent_of, whose
from triage.core.log.candidates import Candidate, candidates
from triage.core.log.clock import seconds
from triage.core.log.confidence import says_much, weight
from triage.core.log.consequences import consequences, decoys, teardown
from triage.core.log.endings import (
    Ending,
    is_native,
    is_panic,
    is_peer_gone,
    is_standstill,
)
from triage.core.log.evidence import Generation
from triage.core.log.last_words import last_words
from triage.core.log.ranking import Ranking
from triage.core.log.ranks import members, resolved
from triage.core.log.survived import answered, is_cleared, is_other
from triage.core.records import dataclass

_FAR_MORE = 20  # characters that a pattern must say more than another to outweigh context
_MESSAGE = 3  # lines that the message of an exception may go on for behind an empty one
_NEARBY = 200  # lines above the end of a process in which its reason is looked for
_SKEW = 2.0  # seconds by which clocks of two sources may differ


@dataclass(frozen=True, slots=True)
class Finding:
    """The root and what hangs together with it.

    `same` are the candidates with the root's signature, the root among them;
    `others` the causes that would explain the log less well, best first; `silent` the
    ranks that said nothing while all others lost a peer; `woven` ranks whose tracebacks
    cannot be told apart, and that all failed alike; `echoed` says that the root only
    shows that a rank was lost. `explain` says for each step what it left out.
    """

    root: Candidate | None = None
    same: tuple[Candidate, ...] = ()
    others: tuple[Candidate, ...] = ()
    silent: tuple[str, ...] = ()
    woven: tuple[str, ...] = ()
    echoed: bool = False
    cascade: tuple[int, ...] = ()
    teardown: tuple[int, ...] = ()
    decoys: tuple[tuple[int, str], ...] = ()
    explain: tuple[Explained, ...] = ()


def find(generation: Generation, causes: Sequence[Cause]) -> Finding:
    """The root among all candidates.

    Args:
        generation: What the log shows.
        causes: By index, as the matches name them.
    """
    everything = candidates(generation, causes)
    for c in everything:
        c.rank = resolved(c.rank, generation.tags)
    _told_twice(everything)
    ranking = Ranking(list(everything))
    ranking.say("candidates", everything)
    ranking.drop("a consequence, or harmless", lambda c: c.noise)
    unproven = ranking.drop(
        "what it demands may have stood in the head that is cut off", lambda c: c.unproven
    )
    panics = [c.line for c in ranking.left if c.tb and c.tb.exception.endswith("PanicException")]
    ranking.drop(
        "the exception below it says what panicked",
        lambda c: is_panic(c.text) and any(0 < n - c.line <= _NEARBY for n in panics),
    )
    _placed(ranking)
    before = list(ranking.left)
    ranking.drop("the rank went on after it", lambda c: c.passed)
    ranking.drop("the server was ready after it", lambda c: is_cleared(c, generation))
    ranking.drop("another program's, beside a server that is up", lambda c: is_other(c, generation))
    ranking.remove("the server went on to answer", answered(ranking.left, generation))
    _yield(ranking, before)
    _yield_to_named(ranking)
    _yield_to_kernels(ranking, generation)
    aside = ranking.drop(
        "it only shows that another rank is lost, or late", lambda c: c.echo and c.cause is None
    )
    aside += ranking.drop("a library's complaint", lambda c: c.trouble)
    _explain(ranking)
    best: dict[int, int] = {}
    for c in ranking.left:
        best[c.chain] = min(c.place, best.get(c.chain, c.place))
    ranking.drop(
        "another exception of its chain says more",
        lambda c: c.chain > 0 and c.place > best[c.chain],
    )
    _prefer_tracebacks(ranking)
    _prefer_the_odd(ranking, generation)
    _prefer_the_finished(ranking)
    _before_aborts(ranking, aside)
    silent: tuple[str, ...] = ()
    echoed = not ranking.left
    if echoed:
        silent = _fall_back(ranking, aside, generation)
    if not ranking.left:
        root = None
    else:
        certain = any(not c.named and c.strength == 0 for c in ranking.left)
        earlier = _sequence(ranking.left, generation.spans)
        ranking.left.sort(key=lambda c: _key(c, earlier[id(c)], certain=certain))
        root = _first_alike(_best_on_line(ranking), ranking.left)
        root, unproven = _likely(root, unproven, ranking)
    return _finish(
        root,
        everything,
        ranking,
        generation,
        causes,
        silent=silent,
        echoed=echoed,
        unproven=unproven,
    )


def _best_on_line(ranking: Ranking) -> Candidate:
    """The root; where several causes match its line, one whose pattern says far more wins."""
    root = ranking.left[0]
    rivals = [c for c in ranking.left if c.line == root.line and c.cause is not None]
    if root.cause is None or root.cause.context or len(rivals) < 2:  # noqa: PLR2004
        return root
    weights = {id(c): weight(c.cause, c.text) for c in rivals if c.cause}
    most = max(weights.values())
    best = next(c for c in rivals if weights[id(c)] > most - _FAR_MORE)
    if best is not root:
        ranking.say("a cause whose pattern says more of the line", [best])
    return best


def _likely(
    root: Candidate, unproven: Sequence[Candidate], ranking: Ranking
) -> tuple[Candidate, list[Candidate]]:
    """The root, or the one cause of its line that lacks nothing but the head of the log."""
    rivals = [c for c in unproven if c.line == root.line]
    names = {c.cause.id for c in rivals if c.cause}
    if root.cause is not None or len(names) != 1 or not says_much(rivals[0]):
        return root, rivals
    ranking.say("nothing speaks against it but that the head is cut off", rivals[:1])
    alike = [c for c in unproven if c.signature == rivals[0].signature]
    ranking.left = [c for c in ranking.left if c.line not in {a.line for a in alike}] + alike
    return rivals[0], []


def _first_alike(root: Candidate, left: Sequence[Candidate]) -> Candidate:
    """The first line of the root's failure in its source, also if its head was cut off."""
    alike = [
        c
        for c in left
        if c.signature == root.signature
        and c.source == root.source
        and (c.tb is not None) == (root.tb is not None)
        and c.strength <= 1
        and c.echo == root.echo
    ]
    first = min([root, *alike], key=lambda c: c.line)
    if first.tb is not None or first.cause is None:
        return first
    # A message may go on behind an empty line: the exception says the same, and first.
    own = (
        c
        for c in left
        if c.tb is not None and c.cause is first.cause and c.rank == first.rank
        if 0 < first.line - c.line <= _MESSAGE
    )
    return max(own, key=lambda c: c.line, default=first)


def _key(c: Candidate, place: float, *, certain: bool) -> tuple[object, ...]:
    return (
        _standing(c),
        c.echo,
        c.communication,
        c.strength if certain or not c.named else min(c.strength, 1),
        place,
        -c.specific,
        -sum(map(len, c.captures.values())),
    )


def _standing(c: Candidate) -> int:
    """Named before unnamed; but a rank's own exception before a name for what its peers saw."""
    if c.named and not c.echo:
        return 0
    own = c.strength == 0 and not (c.abort or c.echo or c.communication)
    return 1 if own else 2 + (not c.named)


def _sequence(left: Sequence[Candidate], spans: Mapping[str, list[int]]) -> dict[int, float]:
    """By id: when the candidate was printed, as a line number.

    Where the logs of several sources were joined one after another, the clock decides,
    unless it is so close that two clocks may differ. In a log that was merged while it was
    written, the order of its lines is surer than the clocks of two machines.
    """
    first: dict[str, Candidate] = {}
    for c in left:
        if c.source not in first or c.line < first[c.source].line:
            first[c.source] = c
    ends = sorted(spans[name] for name in first if name in spans)
    joined = len(ends) > 1 and all(a[1] < b[0] for a, b in pairwise(ends))
    if not joined or any(seconds(c.time) is None for c in first.values()):
        return {id(c): c.line for c in left}
    times = {name: seconds(c.time) or 0.0 for name, c in first.items()}
    start = min(times.values())
    late = {name for name, at in times.items() if at - start > _SKEW}
    far = max(c.line for c in left) + 1
    return {id(c): c.line + (far if c.source in late else 0) for c in left}


def _told_twice(everything: Sequence[Candidate]) -> None:
    """The first of two equal exceptions is the reason, also if only the second ends a process.

    vLLM logs a worker's exception and lets it go on; a parent raises its child's again.
    """
    by_text: dict[str, list[Candidate]] = {}
    for c in everything:
        if c.tb is not None and not c.passed:
            by_text.setdefault(c.text, []).append(c)
    for equal in by_text.values():
        strongest = min(c.strength for c in equal)
        for c in equal:
            c.strength = min(c.strength, strongest)


def _placed(ranking: Ranking) -> None:
    """An exception whose frames are cut off is what an equal one with frames is.

    In no phase it is in that of any cause.
    """
    known: dict[str, set[str]] = {}
    for c in ranking.left:
        if c.tb is not None and c.cause is not None and c.phase != "unknown":
            known.setdefault(c.text, set()).add(c.cause.id)
    ranking.drop(
        "the same exception stands below it with its phase, and has another cause there",
        lambda c: (
            c.tb is not None and c.cause is not None and bool(c.cause.phases)
            and c.phase == "unknown" and c.cause.id not in known.get(c.text, {c.cause.id})
        ),
    )  # fmt: skip


def _yield(ranking: Ranking, before: Sequence[Candidate]) -> None:
    """A cause gives way to those that it names, also where their line was survived."""
    for c in list(ranking.left):
        if c.cause is None or not c.cause.yields_to:
            continue
        winners = [w for w in before if w.cause and w.cause.id in c.cause.yields_to]
        if winners:
            ranking.remove(f"gives way to {winners[0].signature}", [c])
            if not any(w in ranking.left for w in winners):
                ranking.left.append(winners[0])


def _yield_to_named(ranking: Ranking) -> None:
    """A general cause gives way to every other that names the same exception, or its chain."""
    named = [c for c in ranking.left if c.cause is not None and not c.cause.general]
    lines = {c.line for c in named}
    chains = {c.chain for c in named} - {0}
    ranking.drop(
        "a cause that says more names it",
        lambda c: (
            c.cause is not None and c.cause.general and (c.line in lines or c.chain in chains)
        ),
    )


def _yield_to_kernels(ranking: Ranking, generation: Generation) -> None:
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


def _explain(ranking: Ranking) -> None:
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


def _prefer_tracebacks(ranking: Ranking) -> None:
    """Of one cause's lines, the exception that ended the process says more than a log line.

    But a library that complains before it says first what Python then only passes on.
    """
    ended = [c for c in ranking.left if c.cause and c.tb and c.strength == 0]
    first = {c.cause.id: c.line for c in reversed(ended) if c.cause}
    # A bare assertion says less than a line of its rank.
    mute = {(c.cause.id, c.rank) for c in ended if c.cause and c.tb and not c.tb.message}
    gone: list[Candidate] = []
    for c in ranking.left:
        if c.cause is None or c.tb is not None or c.cause.id not in first:
            continue
        says_it = is_native(c.text) or (c.cause.id, c.rank) in mute
        if says_it and c.line < first[c.cause.id]:
            c.strength = 0  # the exception shows that the process ended with it
        else:
            gone.append(c)
    ranking.remove("the same cause has an exception", gone)


def _prefer_the_odd(ranking: Ranking, generation: Generation) -> None:
    """If nearly all ranks report a broken connection, a rank with an error of its own leads."""
    total = len(members(generation.tags))
    if total < 3:  # noqa: PLR2004  of two ranks none is the odd one
        return
    lost = [c for c in ranking.left if c.tb is not None and c.communication]
    own = [c for c in ranking.left if c.tb is not None and not c.communication and c.strength == 0]
    odd = {c.rank for c in own} - {"main"}
    few = max(1, total // 4)
    if odd and len(odd) <= few and len({c.rank for c in lost} - odd) >= total - 2 * few:
        ranking.remove("the odd rank has an error of its own", lost)


def _prefer_the_finished(ranking: Ranking) -> None:
    """A traceback whose end is not in the log says less than any line that says what failed."""
    if any(not c.unfinished and not c.abort for c in ranking.left):
        ranking.drop("another says what failed, and this one breaks off", lambda c: c.unfinished)


def _before_aborts(ranking: Ranking, aside: Sequence[Candidate]) -> None:
    """The end of a process in native code has its reason above it, if anything stands there."""
    for c in [c for c in ranking.left if c.abort and c.cause is None]:
        above = [
            o
            for o in (*ranking.left, *aside)
            if o is not c and not o.abort and not o.passed and 0 < c.line - o.line <= _NEARBY
            and (o.rank == c.rank or "main" in (o.rank, c.rank))
        ]  # fmt: skip
        if above:
            ranking.remove(f"line {above[0].line} stands above it", [c])
            again = [o for o in above if o not in ranking.left]
            if not any(o in ranking.left for o in above):
                ranking.back("the reason of an abort", again)


def _fall_back(
    ranking: Ranking, aside: Sequence[Candidate], generation: Generation
) -> tuple[str, ...]:
    """Nothing else is left: the first complaint or broken connection; the silent ranks.

    If all but a few ranks lost a peer, the few that said nothing are the ones that went,
    and no line of theirs says why.
    """
    alive = [c for c in aside if not c.passed and not is_standstill(c.text)]
    echoes = [c for c in alive if c.echo]
    silent = silent_of(echoes, generation)
    if silent and "main" not in {c.rank for c in echoes}:
        if all(is_peer_gone(c.text) for c in echoes):
            return silent
        ranking.back("nothing else is left", echoes)
        return silent
    died = generation.of(Ending.DEATH)
    trouble = [c for c in alive if c.trouble]
    trouble = trouble if died or echoes else last_words(trouble, generation)
    tracebacks = [c for c in echoes if c.tb is not None and not _is_parents(c)]
    # A line about a lost connection has no author; an exception has one that ended with it.
    lines = [c for c in echoes if c.cause is not None or not is_peer_gone(c.text)]
    ranking.back("nothing else is left", trouble or tracebacks or lines)
    return ()


def _is_parents(c: Candidate) -> bool:
    """Whether a process only lost the pipe to its child: an EOFError says nothing more."""
    return c.rank == "main" and c.tb is not None and c.tb.exception in ("EOFError",)


def _finish(
    root: Candidate | None,
    everything: Sequence[Candidate],
    ranking: Ranking,
    generation: Generation,
    causes: Sequence[Cause],
    *,
    silent: tuple[str, ...],
    echoed: bool,
    unproven: Sequence[Candidate],
) -> Finding:
    same: list[Candidate] = []
    others: dict[str, Candidate] = {}
    if root is not None:
        mark = root.signature
        same = sorted((c for c in ranking.left if c.signature == mark), key=lambda c: c.line)
        ranking.say("root", [root])
        for c in (*ranking.left, *unproven):
            if c.cause is not None and c.signature != mark:
                others.setdefault(c.cause.id, c)
    cascade = consequences(root, same, everything, generation, causes)
    return Finding(
        root=root,
        same=tuple(same),
        others=tuple(others.values()),
        silent=silent or whose(root, everything, generation),
        woven=_woven(root, generation),
        echoed=echoed,
        cascade=cascade,
        teardown=teardown(root, cascade, generation, causes),
        decoys=decoys(generation, causes, root),
        explain=tuple(ranking.steps),
    )


def _woven(root: Candidate | None, generation: Generation) -> tuple[str, ...]:
    """Ranks that wrote at once, if each of them has an exception of the root's text."""
    if root is None or root.tb is None or len(generation.woven) < 2:  # noqa: PLR2004
        return ()
    alike = sum(tb.text == root.tb.text for tb in generation.tracebacks)
    ranks = {resolved(rank, generation.tags) for rank in generation.woven}
    return tuple(ranks) if alike >= len(ranks) else ()

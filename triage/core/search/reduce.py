"""Minimal failing sets: which are known, and what to launch to find the next one.

In:  a Problem and its journal.
Out: FailingSets; and, for one failure, the subsets worth launching next, best first.
Not: the order of the stages or the budget (plan.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from triage.core.phases import order
from triage.core.search.journal import Known, read_journal, signature
from triage.core.search.subsets import Keys, one_smaller, rank, with_needs
from triage.core.trials import Entry, FailingSet, Problem, Seen
from triage.core.wording import join

PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A subset that could narrow one failure down, and what its launch would mean."""

    keys: Keys
    why: str


def failing_sets(problem: Problem, journal: Sequence[Entry]) -> tuple[FailingSet, ...]:
    """The smallest sets that showed each failure, as far as the journal goes.

    Ordered by the phase of the failure, then smaller sets first, then launch
    order. `minimal` holds if each set with one item less was launched and did not
    show the failure.
    """
    known = read_journal(problem, journal)
    found = [
        _failing_set(known, keys) for sig in known.signatures() for keys in shown_sets(known, sig)
    ]
    return tuple(sorted(found, key=lambda s: (order(s.phase), len(s.items), s.entry)))


def shown_sets(known: Known, searched: str) -> tuple[Keys, ...]:
    """Sets that showed the failure and hold no smaller one that did; smallest first."""
    shown = [keys for keys in known.failing() if known.shows(keys, searched)]
    least = [keys for keys in shown if not any(other < keys for other in shown)]
    return tuple(sorted(least, key=lambda keys: (len(keys), known.resolved[keys].number)))


def probes(known: Known, searched: str) -> tuple[Probe, ...]:
    """Subsets whose launch would narrow the failure `searched` down; () if nothing is left to ask.

    All of one kind: pairs, or one set with an item less. Of each set that showed
    the failure, every smaller neighbour is asked in the end, so that what is
    reported as minimal was seen to be.
    """
    for keys in shown_sets(known, searched):
        smaller = _deletions(known, searched, keys)
        if smaller:
            # A pair that shows the failure ends the search at once, and a deletion
            # always gets nearer: pairs, then, while they are no dearer, and those
            # of which both items are suspected in any case.
            pairs = _pairs(known, searched, keys)
            suspects = known.suspects(searched)
            likely = tuple(p for p in pairs if p.keys <= suspects)
            return likely or (pairs if 0 < len(pairs) <= len(smaller) else smaller)
    return ()


def _pairs(known: Known, searched: str, within: Keys) -> tuple[Probe, ...]:
    """Pairs inside a set that showed the failure, the most suspected and heaviest first."""
    problem, suspects = known.problem, known.suspects(searched)
    found: dict[Keys, Probe] = {}
    for two in combinations((i.key for i in problem.items if i.key in within), PAIR):
        keys = with_needs(problem, two)
        if keys is None or keys == within or not known.pending(keys):
            continue
        if not _ruled_out(known, searched, keys):
            found[keys] = Probe(
                keys=keys,
                why=f"Do {join(keys, problem)} show {searched} by themselves? If they start, they "
                "are not enough for it; another failure says nothing about it.",
            )
    return tuple(
        sorted(found.values(), key=lambda p: (-len(p.keys & suspects), rank(problem, p.keys)))
    )


def _deletions(known: Known, searched: str, within: Keys) -> tuple[Probe, ...]:
    """The set with one item less, each way that has no answer yet; idle-looking items first."""
    problem, suspects = known.problem, known.suspects(searched)
    weight = {item.key: item.weight for item in problem.items}
    found: dict[Keys, tuple[tuple[bool, bool, float], Probe]] = {}
    for item, keys in one_smaller(problem, within):
        if known.pending(keys) and keys not in found:
            needed = _ruled_out(known, searched, keys)
            probe = Probe(
                keys=keys,
                why=f"Does {searched} show without {item}? If it does, {item} has no part in it; "
                f"if this starts, the failure needs {item}.",
            )
            found[keys] = ((needed, item in suspects, weight[item]), probe)
    return tuple(probe for _, probe in sorted(found.values(), key=lambda pair: pair[0]))


def _ruled_out(known: Known, searched: str, keys: Keys) -> bool:
    """Whether the subset cannot show the failure, if adding a flag never repairs one.

    It lies inside a set that started; or inside a set that lacks the failure
    although a still larger one has it, so that no earlier failure can have
    hidden it there.
    """
    for larger, entry in known.resolved.items():
        if not keys < larger or known.shows(larger, searched):
            continue
        if entry.seen is Seen.STARTS:
            return True
        if any(larger < top and known.shows(top, searched) for top in known.failing()):
            return True
    return False


def _failing_set(known: Known, keys: Keys) -> FailingSet:
    entry = known.resolved[keys]
    neighbours = [smaller for _, smaller in one_smaller(known.problem, keys)]
    rests_on = [entry, *(known.resolved[n] for n in neighbours if n in known.resolved)]
    return FailingSet(
        items=keys,
        signature=signature(entry),
        cause=entry.cause,
        title=entry.title,
        phase=entry.phase,
        entry=entry.number,
        minimal=all(n in known.resolved for n in neighbours),
        assumed=any(e.provenance == "assumed" for e in rests_on),
    )

"""Minimal failing sets: which the launches have shown.

In:  a Problem and its journal. Out: FailingSets.
Not: what is only likely (suspected.py) or which launch would show more (plan.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from triage.core.phases import order
from triage.core.search.journal import Known, read_journal, signature
from triage.core.search.subsets import Keys, one_smaller
from triage.core.trials import Entry, FailingSet, Problem, Seen


def failing_sets(problem: Problem, journal: Sequence[Entry]) -> tuple[FailingSet, ...]:
    """The smallest sets that showed each failure, as far as the journal goes.

    Ordered by the phase of the failure, then smaller sets first, then launch
    order. `minimal` holds if each set with one item less was launched and did not
    show the failure, or lies inside a launch that rules it out.
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


def _ruled_out(known: Known, searched: str, keys: Keys) -> bool:
    """Whether the subset cannot show the failure, if adding a flag never repairs one.

    It lies inside a set that started; or inside a set that lacks the failure
    although a still larger one has it, so that no earlier failure can have
    hidden it there. That holds of one cause: where one name is seen in several
    phases there are several, and one of them may be hidden.
    """
    shown = {entry.phase for keys, entry in known.resolved.items() if known.shows(keys, searched)}
    for larger, entry in known.resolved.items():
        if not keys < larger or known.shows(larger, searched):
            continue
        if entry.seen is Seen.STARTS:
            return True
        if len(shown) == 1 and any(
            larger < top and known.shows(top, searched) for top in known.failing()
        ):
            return True
    return False


def _passed(known: Known, entry: Entry, keys: Keys) -> bool:
    """Whether the engine accepts the subset, and the failure is one of what it checks first."""
    return keys in known.passed and entry.rung in ("static", "resolution")


def _failing_set(known: Known, keys: Keys) -> FailingSet:
    entry = known.resolved[keys]
    neighbours = [smaller for _, smaller in one_smaller(known.problem, keys)]
    rests_on = [entry, *(known.resolved[n] for n in neighbours if n in known.resolved)]
    unasked = [n for n in neighbours if n not in known.resolved and not _passed(known, entry, n)]
    ruled_out = [n for n in unasked if _ruled_out(known, signature(entry), n)]
    return FailingSet(
        items=keys,
        signature=signature(entry),
        cause=entry.cause,
        title=entry.title,
        phase=entry.phase,
        entry=entry.number,
        minimal=len(ruled_out) == len(unasked),
        implied=bool(ruled_out),
        assumed=any(e.provenance == "assumed" for e in rests_on),
    )

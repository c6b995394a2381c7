"""What the finished trials show, by subset of the wanted items.

In:  a Problem and its journal. Out: Known: the resolved trials, the attempts that were lost.
Not: minimal sets (reduce.py) or the next trial (plan.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triage.core.search.subsets import Keys, distinct
from triage.core.trials import Entry, Problem, Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The journal, read for one problem.

    `problem` holds only items that change something. `resolved` is in the order
    of the launches; `lost` counts the unresolved attempts of the sets that have
    no answer yet.
    """

    problem: Problem
    resolved: Mapping[Keys, Entry]
    lost: Mapping[Keys, int]

    def pending(self, keys: Keys) -> bool:
        """Whether a launch of this subset may still give an answer."""
        return keys not in self.resolved and self.lost.get(keys, 0) <= self.problem.retries

    def given_up(self) -> tuple[Keys, ...]:
        """Subsets that stayed unresolved in every attempt that they were given."""
        return tuple(keys for keys in self.lost if not self.pending(keys))

    def starting(self) -> tuple[Keys, ...]:
        """Subsets that started, in launch order."""
        return tuple(keys for keys, e in self.resolved.items() if e.seen is Seen.STARTS)

    def failing(self) -> tuple[Keys, ...]:
        """Subsets that failed, whatever the failure, in launch order."""
        return tuple(keys for keys, e in self.resolved.items() if e.seen is Seen.FAILS)

    def signatures(self) -> tuple[str, ...]:
        """The failures seen, in the order in which they were first seen."""
        return tuple(dict.fromkeys(signature(self.resolved[keys]) for keys in self.failing()))

    def shows(self, keys: Keys, searched: str) -> bool:
        """Whether the subset was launched and failed with the failure `searched`."""
        entry = self.resolved.get(keys)
        return entry is not None and entry.seen is Seen.FAILS and signature(entry) == searched

    def suspects(self, searched: str | None) -> frozenset[str]:
        """Keys of the items at which the diagnoses point, of one failure or (None) of all."""
        flags = {
            flag
            for entry in self.resolved.values()
            if entry.seen is Seen.FAILS and searched in (None, signature(entry))
            for flag in entry.suspects
        }
        items = self.problem.items
        return frozenset(i.key for i in items if i.key in flags or i.change.name in flags)


def signature(entry: Entry) -> str:
    """The name of the entry's failure; "none" where the diagnosis found no name."""
    return entry.signature or "none"


def read_journal(problem: Problem, journal: Sequence[Entry]) -> Known:
    """What the journal shows about subsets of this problem's items.

    Entries with an item that the problem does not know, or of a subset that it
    does not allow, belong to an earlier version of it and are passed over. Of
    several answers for one subset the last one stands.
    """
    cleaned = distinct(problem)
    resolved: dict[Keys, Entry] = {}
    lost: dict[Keys, int] = {}
    for entry in journal:
        if not entry.items <= problem.keys():
            continue
        keys = entry.items & cleaned.keys()
        if not cleaned.allowed(keys):
            continue
        if entry.seen is Seen.UNRESOLVED:
            lost[keys] = lost.get(keys, 0) + 1
        else:
            resolved[keys] = entry
    unanswered = {keys: count for keys, count in lost.items() if keys not in resolved}
    return Known(problem=cleaned, resolved=resolved, lost=unanswered)

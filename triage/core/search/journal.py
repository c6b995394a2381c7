"""What the finished trials show, by subset of the wanted items.

In:  a Problem and its journal. Out: Known: the resolved trials, the attempts that were lost.
Not: minimal sets (reduce.py) or the next trial (plan.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from triage.core.search.subsets import Keys, distinct
from triage.core.trials import Entry, Problem, Seen

PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The journal, read for one problem.

    `problem` holds only items that change something, and the needs that rejections
    taught (`learned`, each with the number of its trial). `entries` are those that belong
    to it, in the order of the launches, and so is `resolved`; `lost` counts the
    unresolved attempts of the sets that have no answer yet. `passed` are sets that the
    engine accepts before it starts a process: no answer, but no failure of its checks.
    """

    problem: Problem
    entries: tuple[Entry, ...]
    learned: tuple[tuple[str, str, int], ...]
    resolved: Mapping[Keys, Entry]
    lost: Mapping[Keys, int]
    passed: frozenset[Keys] = frozenset()

    def pending(self, keys: Keys) -> bool:
        """Whether a launch of this subset may still give an answer."""
        return keys not in self.resolved and self.lost.get(keys, 0) <= self.problem.retries

    def given_up(self) -> tuple[Keys, ...]:
        """Subsets that stayed unresolved in every attempt that they were given."""
        return tuple(keys for keys in self.lost if not self.pending(keys))

    def starting(self) -> tuple[Keys, ...]:
        """Subsets that started, in launch order."""
        return tuple(keys for keys, e in self.resolved.items() if e.seen is Seen.STARTS)

    def started_in(self, keys: Keys) -> Entry:
        """The last trial in which the subset started, else the one that stands for it."""
        starts = [e for e in self.entries if e.items == keys and e.seen is Seen.STARTS]
        return starts[-1] if starts else self.resolved[keys]

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
    learned = _learned(cleaned, journal)
    cleaned = replace(cleaned, requires=(*cleaned.requires, *((a, b) for a, b, _ in learned)))
    choices = frozenset(choice.key for choice in problem.choices())
    kept = frozenset(choice.key for choice in cleaned.choices())
    resolved: dict[Keys, Entry] = {}
    lost: dict[Keys, int] = {}
    passed: set[Keys] = set()
    entries: list[Entry] = []
    for entry in journal:
        keys = entry.items & kept
        if not entry.items <= choices or not cleaned.allowed(keys):
            continue
        if entry.seen is Seen.PASSES:
            passed.add(keys)
            continue
        entries.append(entry if keys == entry.items else replace(entry, items=keys))
        if entry.seen is Seen.UNRESOLVED:
            lost[keys] = lost.get(keys, 0) + 1
        else:
            resolved[keys] = entry
    unanswered = {keys: count for keys, count in lost.items() if keys not in resolved}
    return Known(
        problem=cleaned,
        entries=tuple(entries),
        learned=learned,
        resolved=resolved,
        lost=unanswered,
        passed=frozenset(passed),
    )


def _learned(problem: Problem, journal: Sequence[Entry]) -> tuple[tuple[str, str, int], ...]:
    """Needs that the engine named when it turned a launch down: (item, what it needs, trial).

    The rejection came before any weight was read, and points at two wanted flags of
    which the launch had one. A launch that started without the other one disproves it.
    """
    wanted = problem.keys()
    started = [entry.items for entry in journal if entry.seen is Seen.STARTS]
    found: dict[tuple[str, str], int] = {}
    for entry in journal:
        named = tuple(dict.fromkeys(s for s in entry.suspects if s in wanted))
        if entry.seen is not Seen.FAILS or not entry.early or len(named) != PAIR:
            continue
        a, b = named if named[0] in entry.items else named[::-1]
        lacks = a in entry.items and b not in entry.items
        if lacks and not any(a in items and b not in items for items in started):
            found.setdefault((a, b), entry.number)
    return tuple((a, b, number) for (a, b), number in found.items())

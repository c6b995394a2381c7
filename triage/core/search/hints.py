"""Which level of a range a failing message asks for.

In:  a Problem, the changes that the remedies of a diagnosis propose. Out: keys of levels.
Not: reading numbers out of messages (triage.core.log) or weighing them (likelihood.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from triage.core.config import Change, SetFlag
from triage.core.trials import Item, Problem


def hinted_levels(problem: Problem, changes: Iterable[Change]) -> tuple[str, ...]:
    """The first level of each range that reaches a value which the changes ask for."""
    found: dict[str, None] = {}
    for change in changes:
        wanted = _number(change)
        levels = [(i, n) for i in problem.repairs if (n := _level(i, change)) is not None]
        if wanted is None or len(levels) < 2:  # noqa: PLR2004  a repair of one value is no range
            continue
        rises = levels[-1][1] > levels[0][1]
        reach = [i.key for i, n in levels if (n >= wanted if rises else n <= wanted)]
        found[reach[0] if reach else levels[-1][0].key] = None
    return tuple(found)


def _level(item: Item, change: Change) -> float | None:
    """The item's value, if it is a level of the flag that the change sets."""
    same = isinstance(change, SetFlag) and item.change.name == change.name
    return _number(item.change) if same and item.key != item.change.name else None


def _number(change: Change) -> float | None:
    if not isinstance(change, SetFlag) or isinstance(change.value, bool):
        return None
    try:
        return float(str(change.value))
    except ValueError:
        return None

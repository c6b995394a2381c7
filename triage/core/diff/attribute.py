"""Which of the resolved fields that differ did the user set, and which did the engine move?

In:  the fields that differ, what the user typed if that is known, the rules. Out: Told by field.
Not: finding what differs (compare.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Literal

from triage.core.diff.rules import Rules
from triage.core.flags import FlagTable
from triage.core.records import dataclass

_DEEP = 6  # steps from a moved field back to what was set


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Whose doing a difference is; see FieldChange."""

    kind: Literal["typed", "moved", "open"]
    by: tuple[str, ...] = ()
    where: str = ""
    also: bool = False
    why: str = ""


def attributed(
    changed: Mapping[str, tuple[object, object]],
    typed: Collection[str] | None,
    rules: Rules,
    table: FlagTable,
) -> dict[str, Told]:
    """What is known of each changed field: first what was set, then what moved, by name.

    With one typed field the rest moved because of it, whether a rule says so or not:
    nothing else differs. Without the user's command, fields that no known rule moves
    stand for what was typed.
    """
    links = {field: tuple(_links(field, changed, rules)) for field in changed}
    if typed is not None:
        typed = {field for field in changed if field.partition(".")[0] in typed}
        roots = set(typed)
    else:
        roots = _roots(changed, links, rules)
    told = {
        field: Told(kind="typed" if typed is not None else "open")
        for field in changed
        if field in roots
    }
    for field in changed:
        if field not in roots:
            told[field] = _moved(field, roots, links, rules, table, certain=typed is not None)
    return told


def _links(
    field: str, changed: Mapping[str, tuple[object, object]], rules: Rules
) -> Iterator[tuple[str, str]]:
    """(another changed field, the place that moves this one because of it), nearest rule first."""
    whole = field.partition(".")[0]
    places = sorted(rules.moves.get(whole, ()), key=lambda place: len(place.looks_at))
    for place in places:
        for name in changed:
            if name != field and name.partition(".")[0] in place.looks_at:
                yield name, place.where


def _roots(
    changed: Mapping[str, tuple[object, object]],
    links: Mapping[str, tuple[tuple[str, str], ...]],
    rules: Rules,
) -> set[str]:
    """Fields that nothing else among them moves; of a ring of fields that move each other, all."""
    lead = {
        field: {one for one in follower.leaders if one in changed and one != field}
        for field in changed
        if (follower := rules.follower(field)) is not None
    }
    because = {
        field: lead.get(field) or {name for name, _ in links[field]} - _led_by(field, lead)
        for field in changed
    }
    roots = {field for field in changed if not because[field]}
    reached = set(roots)
    while True:
        more = {f for f in changed if f not in reached and because[f] & reached}
        if not more:
            rest = set(changed) - reached
            if not rest:
                return roots
            more = {min(rest, key=lambda f: (len(because[f]), f))}
            roots |= more
        reached |= more


def _led_by(field: str, lead: Mapping[str, set[str]]) -> set[str]:
    """The fields that only follow this one, so that they cannot have moved it."""
    return {name for name, leaders in lead.items() if field in leaders}


def _moved(
    field: str,
    roots: Collection[str],
    links: Mapping[str, tuple[tuple[str, str], ...]],
    rules: Rules,
    table: FlagTable,
    *,
    certain: bool,
) -> Told:
    follower = rules.follower(field)
    if follower is not None and (led := [x for x in follower.leaders if x in links]):
        by = tuple(dict.fromkeys(name for one in led for name in _origin(one, roots, links)))
        return Told(
            kind="moved", by=_named(by or tuple(led), table), also=True, why=follower.reason
        )
    by = _origin(field, roots, links)
    where = links[field][0][1] if links[field] else ""
    if not by and certain and len(roots) == 1:
        by = tuple(roots)
    return Told(kind="moved", by=_named(by, table), where=where)


def _origin(
    field: str, roots: Collection[str], links: Mapping[str, tuple[tuple[str, str], ...]]
) -> tuple[str, ...]:
    """The set fields that are known to move this one, directly or over others."""
    found: dict[str, None] = {}
    seen, layer = {field}, [field]
    for _ in range(_DEEP):
        found |= dict.fromkeys(name for name in layer if name in roots)
        if found:
            break
        layer = list(dict.fromkeys(
            name for one in layer for name, _ in links.get(one, ()) if name not in seen
        ))  # fmt: skip
        seen |= set(layer)
    return tuple(found)


def _named(fields: Collection[str], table: FlagTable) -> tuple[str, ...]:
    """Fields by the names of their flags, where they have one."""
    return tuple(spec.name if (spec := table.by_field(f)) else f for f in fields)

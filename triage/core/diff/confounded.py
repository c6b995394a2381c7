"""Did a trial change more than it was meant to?

In:  a trial's items and effective configuration, the journal so far, the rules. Out: Moved values.
Not: launching, or saying it to anybody.

A flag is not one change: the engine may switch other values with it, or take another value than
the one that was set, and then the trial's verdict is about all of them. Each trial is compared with
the finished trial that is nearest to it, and with the baseline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from triage.core.config import SetFlag
from triage.core.diff.rules import Rules
from triage.core.flags import FlagTable
from triage.core.redact import SECRET_NAME
from triage.core.server_args import FILLED_IN
from triage.core.trials import Entry, Moved, Problem
from triage.core.wording import ENV, WITHOUT

_PLACED = frozenset({"host", "port"})
_PLAIN = frozenset({"int", "float", "str"})


def moved_besides(
    items: frozenset[str],
    problem: Problem,
    effective: Mapping[str, str],
    journal: Sequence[Entry],
    *,
    rules: Rules,
    table: FlagTable,
) -> tuple[Moved, ...]:
    """What differs in the effective configuration beside what the trial was meant to change.

    Empty where nothing is known to compare with: no dump of this trial, or of any other.
    What only follows from an intended change (rules.followers) is no second change.
    """
    if not effective:
        return ()
    found: dict[str, Moved] = {}
    for moved in _overridden(items, problem, effective, table):
        found[moved.name] = moved
    for partner in _partners(items, journal):
        intended = items ^ partner.items
        for name in _differing(effective, partner.effective, _flags(intended), rules, table):
            by = _by(name, intended, effective, journal, rules)
            found.setdefault(
                name,
                Moved(
                    name=name,
                    before=partner.effective.get(name),
                    after=effective.get(name),
                    against=partner.number,
                    by=by,
                ),
            )
        for moved in _variables(items, problem, effective, partner, rules=rules, table=table):
            found.setdefault(moved.name, moved)
    return tuple(found[name] for name in sorted(found) if not SECRET_NAME.search(name))


def _partners(items: frozenset[str], journal: Sequence[Entry]) -> Iterator[Entry]:
    """The finished trial that differs in the fewest items, and the baseline if it is another."""
    full = [entry for entry in journal if entry.rung == "full"]  # a twin's values are its own
    known = [entry for entry in full if entry.effective and entry.items != items]
    if known:
        nearest = min(known, key=lambda e: (len(e.items ^ items), len(e.items), e.number))
        yield nearest
        yield from (e for e in known if not e.items and e is not nearest)


def _flags(items: Iterable[str]) -> frozenset[str]:
    """The flags that these items set or leave out; a range's level is `flag=value`."""
    names = (key.removeprefix(WITHOUT).partition("=")[0] for key in items)
    return frozenset(name for name in names if not name.startswith(ENV))


def _differing(
    mine: Mapping[str, str],
    other: Mapping[str, str],
    intended: frozenset[str],
    rules: Rules,
    table: FlagTable,
) -> Iterator[str]:
    names = sorted(mine.keys() | other.keys())
    differing = [name for name in names if mine.get(name) != other.get(name)]
    changed = {_field(name, table) for name in (*differing, *intended)}
    sides = [{_field(name, table): value for name, value in side.items()} for side in (mine, other)]
    for name in differing:
        field = _field(name, table)
        follower = rules.follower(field)
        follows = follower is not None and any(one in changed - {field} for one in follower.leaders)
        says_nothing = rules.reason("resolved", field, *sides)
        if name not in intended and name not in _PLACED and not follows and not says_nothing:
            yield name


def _variables(
    items: frozenset[str],
    problem: Problem,
    effective: Mapping[str, str],
    partner: Entry,
    *,
    rules: Rules,
    table: FlagTable,
) -> Iterator[Moved]:
    """Variables that the engine sets without a word as a side effect of what differs."""
    sides = [
        {_field(name, table): value for name, value in side.items()}
        for side in (partner.effective, effective)
    ]
    intended = items ^ partner.items
    fields = {_field(name, table): key for key in intended for name in _flags([key])}
    env = problem.config(items | partner.items).env_values()
    for rule in rules.env:
        before, after = (rule.value(side) for side in sides)
        if before == after or rule.own in fields or rule.name in env:
            continue
        yield Moved(
            name=f"{ENV}{rule.name}",
            before=before or None,
            after=after or None,
            against=partner.number,
            by=tuple(sorted({fields[name] for name in rule.fields if name in fields})),
        )


def _field(name: str, table: FlagTable) -> str:
    spec = table.specs.get(name)
    return spec.field if spec else name.replace("-", "_")


def _by(
    name: str,
    intended: frozenset[str],
    effective: Mapping[str, str],
    journal: Sequence[Entry],
    rules: Rules,
) -> tuple[str, ...]:
    """The intended changes that moved it: by an earlier trial, by a rule, else any of them."""
    if len(intended) > 1:
        value = effective.get(name)
        shown = [
            e.items & intended for e in journal if e.effective and e.effective.get(name) == value
        ]
        alone = [items for items in shown if len(items) == 1]
        if alone:
            return tuple(min(alone, key=sorted))
        places = rules.moves.get(name.replace("-", "_").partition(".")[0], ())
        looked = {field for place in places for field in place.looks_at}
        ruled = [
            key for key in intended if next(iter(_flags([key])), "").replace("-", "_") in looked
        ]
        if ruled:
            return tuple(sorted(ruled))
    return tuple(sorted(intended))


def _overridden(
    items: frozenset[str], problem: Problem, effective: Mapping[str, str], table: FlagTable
) -> Iterator[Moved]:
    """Flags of the trial's items of which the engine made another value than the one set."""
    for item in problem.choices():
        if item.key not in items or not isinstance(item.change, SetFlag):
            continue
        name, value = item.change.name, item.change.value
        spec = table.specs.get(name)
        plain = spec is not None and spec.style == "value" and spec.type in _PLAIN
        if spec is None or not plain or spec.deprecated or not isinstance(value, str):
            continue
        got = effective.get(name)
        usual = (spec.default, FILLED_IN.get(spec.field))
        if got is None and any(_same(value, str(one)) for one in usual if one is not None):
            continue
        if spec.choices and got is not None and got not in map(str, spec.choices):
            continue  # the engine keeps it in another form, which says nothing here
        if value.startswith(("{", "[")) or (got is not None and _same(value, got)):
            continue
        yield Moved(name=name, before=value, after=got, against=0, by=())


def _same(one: str, other: str) -> bool:
    if one == other:
        return True
    with suppress(ValueError):
        return float(one) == float(other)
    return False

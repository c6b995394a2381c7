"""Propose the configuration closest to the wanted one that a launch has shown to start.

In:  a Problem, its journal, the causes (for the price of what is dropped).
Out: a Recommendation: what to keep, drop, change and add, and how far the evidence goes.
Not: proving that it serves (a Confirmation does) or printing it (triage.render).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from triage.core.causes import Cause
from triage.core.config import Config, SetEnv, SetFlag, UnsetEnv, UnsetFlag, Value, apply
from triage.core.search.belief import belief_of
from triage.core.search.claims import Claim, claims_of
from triage.core.search.implied import Implied, implied
from triage.core.search.journal import Known, read_journal
from triage.core.search.plan import next_trials
from triage.core.search.reduce import failing_sets
from triage.core.search.rungs import Spent, spent
from triage.core.search.subsets import Keys, rank, with_needs
from triage.core.search.suspected import suspected
from triage.core.trials import Done, Entry, FailingSet, Item, Problem
from triage.core.wording import WITHOUT, braces, listed, settings, spell, spell_setting

ALTERNATIVES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One flag or variable and what becomes of it.

    `key` is the flag's name, or `env:NAME`. `value` is the one in the proposal; for
    what is dropped, the one that was wanted. `price` is what is given up, in
    words with their origin, "" where nothing is.
    """

    key: str
    value: Value
    why: str
    price: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A configuration that started in a trial: an alternative to the proposal."""

    items: frozenset[str]
    weight: float
    entry: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The proposal, against the wanted configuration.

    `config` is None if no configuration is known to start. `reason` is that of
    `Done`, or "unfinished" while the search goes on. `proof` is the number of the
    trial that started. `say` is the whole in one sentence, `level` how surely the goal was
    reached, as in `Done`, "" while it is not. `implied` counts what was not launched.
    """

    reason: str
    say: str
    level: str = ""
    config: Config | None = None
    items: frozenset[str] = frozenset()
    keep: tuple[Choice, ...] = ()
    drop: tuple[Choice, ...] = ()
    change: tuple[Choice, ...] = ()
    add: tuple[Choice, ...] = ()
    weight_kept: float = 0.0
    weight_wanted: float = 0.0
    claims: tuple[Claim, ...] = ()
    sets: tuple[FailingSet, ...] = ()
    proof: int | None = None
    alternatives: tuple[Started, ...] = ()
    simulated: bool = False
    spent: Spent = field(default_factory=Spent)
    implied: Implied | None = None


def best_started(problem: Problem, journal: Sequence[Entry]) -> Keys:
    """The worthiest subset that started and is believed to start; the baseline if there is none."""
    known = read_journal(problem, journal)
    belief = belief_of(known)
    return frozenset() if belief.best is None else belief.space.items(belief.best)


def recommend(
    problem: Problem, journal: Sequence[Entry], causes: Sequence[Cause] = ()
) -> Recommendation:
    """The heaviest subset that started, with what supports it and what does not.

    A subset that was not launched, or stayed unresolved, is never proposed.
    """
    known = read_journal(problem, journal)
    step = next_trials(problem, journal)
    reason = step.reason if isinstance(step, Done) else "unfinished"
    ended = step.say if isinstance(step, Done) else "The search has not ended."
    level = step.level if isinstance(step, Done) else ""
    sets = failing_sets(problem, journal)
    simulated = any(entry.simulated for entry in journal)
    started = sorted(_started(known), key=lambda keys: rank(known.problem, keys))
    if not started:
        return Recommendation(
            reason=reason,
            say=f"No configuration is proposed. {ended}",
            weight_wanted=problem.weight(problem.keys()),
            sets=sets,
            simulated=simulated,
            spent=spent(journal),
        )
    best, *others = started
    config = problem.config(best)
    items = frozenset(i.key for i in problem.choices() if apply(config, (i.change,)) == config)
    proof = known.started_in(best)
    picked = _Picked(problem, known, best, items, sets, causes)
    drop, change, add = picked.undone()
    return Recommendation(
        reason=reason,
        level=level,
        say=_headline(problem, items, proof.number, reason, ended),
        config=config,
        items=items,
        keep=picked.kept(),
        drop=drop,
        change=change,
        add=add,
        weight_kept=problem.weight(items),
        weight_wanted=problem.weight(problem.keys()),
        claims=claims_of(
            known,
            best,
            sets,
            suspected(problem, journal),
            level,
        ),
        sets=sets,
        proof=proof.number,
        alternatives=tuple(
            Started(
                items=keys,
                weight=known.problem.weight(keys),
                entry=known.resolved[keys].number,
            )
            for keys in others[:ALTERNATIVES]
        ),
        simulated=simulated,
        spent=spent(journal),
        implied=implied(problem, journal),
    )


def _started(known: Known) -> tuple[Keys, ...]:
    """Subsets that started; where launches may lie, those believed to start come first only."""
    if not known.problem.noise or not known.starting():
        return known.starting()
    belief = belief_of(known)
    if belief.best is None:
        return ()
    best = belief.space.items(belief.best)
    rest = (
        keys
        for keys in known.starting()
        if known.problem.weight(keys) <= known.problem.weight(best)
    )
    return tuple(dict.fromkeys((best, *rest)))


@dataclass(frozen=True, slots=True)
class _Picked:
    """The chosen subset and what is needed to say why each flag stays or goes."""

    problem: Problem
    known: Known
    best: Keys
    items: Keys
    sets: tuple[FailingSet, ...]
    causes: Sequence[Cause]

    def kept(self) -> tuple[Choice, ...]:
        """The baseline's flags and variables, then the wanted items that stay."""
        config = self.problem.config(self.best)
        proof = self.known.started_in(self.best).number
        wanted = {item.key for item in self.problem.choices()}
        base = [
            Choice(key=key, value=value, why="part of the baseline, which started")
            for key, value in settings(config)
            if key not in wanted
        ]
        stays = [
            Choice(key=i.key, value=_value(i), why=f"part of what started in trial {proof}")
            for i in self.problem.items
            if i.key in self.items
        ]
        return (*base, *stays)

    def undone(self) -> tuple[tuple[Choice, ...], tuple[Choice, ...], tuple[Choice, ...]]:
        """The wanted items that go: dropped, changed back to the baseline's, or added back."""
        baseline = dict(settings(self.problem.baseline))
        drop: list[Choice] = []
        change: list[Choice] = []
        add: list[Choice] = []
        for item in self.problem.items:
            if item.key in self.items:
                continue
            why, price = self._why_not(item), self._price(item)
            left_out = item.key.removeprefix(WITHOUT)
            if left_out != item.key:
                back = f"it cannot be left out: {why}"
                value = baseline[left_out]
                add.append(Choice(key=left_out, value=value, why=back, price=price))
            elif item.key in baseline:
                back = f"back to the baseline's value from {spell(item.change)}: {why}"
                change.append(Choice(key=item.key, value=baseline[item.key], why=back, price=price))
            else:
                drop.append(Choice(key=item.key, value=_value(item), why=why, price=price))
        proof = self.known.started_in(self.best).number
        for repair in self.problem.repairs:
            if repair.key in self.items:
                why = f"a repair: part of what started in trial {proof}"
                price = f"{repair.weight:g} by weight, as the recipe says"
                add.append(Choice(key=repair.key, value=_value(repair), why=why, price=price))
        return tuple(drop), tuple(change), tuple(add)

    def _why_not(self, item: Item) -> str:
        """The failing sets that hold the item, else the rule that keeps it out."""
        own = [s for s in self.sets if item.key in s.items]
        if own:
            return "; ".join(
                f"in the failing set {braces(s.items, self.problem)}: {s.title or s.signature} "
                f"(trial {s.entry}{', assumed' if s.assumed else ''})"
                for s in own
            )
        alone = with_needs(self.known.problem, (item.key,))
        if alone is None:
            return "it cannot be had: what it requires and what excludes it contradict each other"
        if not self.known.problem.allowed(self.best | alone):
            return self._excluded(item.key, alone)
        if any(alone <= lost for lost in self.known.given_up()):
            return "a launch with it stayed unresolved"
        return "no launch with it has started so far"

    def _excluded(self, key: str, alone: Keys) -> str:
        """The rule that keeps the item, or what it needs, out of what is proposed."""
        for pair in self.known.problem.not_both:
            kept = [other for other in pair if other in self.best]
            own = [one for one in pair if one in alone and one not in kept]
            if kept and own:
                needs = "" if own[0] == key else f"it needs {own[0]}: "
                return f"{needs}not both {own[0]} and {kept[0]}, which is kept, as a rule says"
        return "a rule excludes it beside something that is kept"

    def _price(self, item: Item) -> str:
        """What the knowledge says that dropping the item costs."""
        named = {s.cause for s in self.sets if item.key in s.items}
        for cause in self.causes:
            for remedy in cause.remedies:
                if cause.id in named and item.key in remedy.unset and remedy.cost:
                    origin = f"{cause.id}: {remedy.evidence}" if remedy.evidence else cause.id
                    return f"{remedy.cost} ({origin}; not measured here)"
        return "not known: no launch here measured what it brings"


def _value(item: Item) -> Value:
    """What the item sets; True where it leaves something out."""
    match item.change:
        case SetFlag(value=value) | SetEnv(value=value):
            return value
        case UnsetFlag() | UnsetEnv():
            return True


def _headline(problem: Problem, items: Keys, proof: int, reason: str, ended: str) -> str:
    stays = [spell(i.change) for i in problem.items if i.key in items]
    parts = [f"keep {listed(stays)}" if stays else "the baseline alone"]
    baseline = dict(settings(problem.baseline))
    gone: dict[str, list[str]] = {}
    for item in problem.items:
        left_out = item.key.removeprefix(WITHOUT)
        if item.key in items:
            continue
        if left_out != item.key:
            gone.setdefault("leave", []).append(spell_setting(left_out, baseline[left_out]))
        elif item.key in baseline:
            gone.setdefault("go back to", []).append(spell_setting(item.key, baseline[item.key]))
        else:
            gone.setdefault("drop", []).append(spell(item.change))
    repairs = [spell(r.change) for r in problem.repairs if r.key in items]
    if repairs:
        gone["add"] = repairs
    parts += [f"{verb} {listed(names)}" for verb, names in gone.items()]
    share = f"{problem.weight(items):g} of {problem.weight(problem.keys()):g} by weight"
    doubt = "" if reason in {"found", "wanted-starts"} else f" Best seen so far: {ended}"
    return f"Proposed: {'; '.join(parts)} ({share}). It started in trial {proof}.{doubt}"

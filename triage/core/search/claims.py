"""What the trials say about a proposal, sentence by sentence, and how far each is supported.

In:  a journal that was read, the proposed subset, the failing sets. Out: Claims.
Not: choosing the proposal (recommend.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from triage.core.search.journal import Known
from triage.core.search.subsets import Keys, heaviest, rank
from triage.core.search.suspected import Suspected
from triage.core.trials import FailingSet
from triage.core.wording import braces, moved_text, pin_text

COUNTABLE = 10  # items; up to here the subsets that were not launched are counted
NOTABLE = 0.3  # a suspicion below this is not worth a sentence
NAMED = 4  # subsets; so many are named, more are only counted


class Kind(StrEnum):
    """How well a statement is supported."""

    SHOWN = "shown"  # a launch showed it
    IMPLIED = "implied"  # follows if adding a flag never repairs a failure
    ASSUMED = "assumed"  # rests on an answer that nobody recorded
    NOT_SHOWN = "not-shown"  # nothing here shows it


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One sentence about the recommendation, and how well it is supported."""

    kind: Kind
    say: str


def claims_of(
    known: Known,
    best: Keys,
    sets: Sequence[FailingSet],
    suspects: Sequence[Suspected] = (),
    level: str = "",
) -> tuple[Claim, ...]:
    """All that can be said of the proposal: shown and assumed, implied, not shown.

    Args:
        known: The journal, read.
        best: The proposed subset; it started.
        sets: The failing sets of the same journal.
        suspects: The causes that the journal points at, shown or not.
        level: How surely the search reached its goal, as in `Done`; "" if it did not.
    """
    return (
        *_shown(known, best, sets),
        *_implied(known, best, level),
        *_likely(known, best, suspects, level),
        *_not_shown(known),
    )


def _shown(known: Known, best: Keys, sets: Sequence[FailingSet]) -> Iterable[Claim]:
    """What launches showed, and which of it rests on an assumed answer."""
    proof = known.started_in(best)
    problem = known.problem
    kind = Kind.ASSUMED if proof.provenance == "assumed" else Kind.SHOWN
    yield Claim(
        kind=kind, say=f"{braces(best, problem)} on the baseline started (trial {proof.number})."
    )
    for s in sets:
        one = "without it" if len(s.items) == 1 else "with any one item less"
        less = (
            f"{one} the failure does not show"
            if s.minimal
            else "whether a smaller set shows it is not known"
        )
        if s.minimal and s.implied:
            less += ", if adding a flag never repairs a failure"
        yield Claim(
            kind=Kind.ASSUMED if s.assumed else Kind.IMPLIED if s.implied else Kind.SHOWN,
            say=f"{braces(s.items, problem)} fails: {s.title or s.signature} "
            f"(trial {s.entry}); {less}.",
        )


def barred(known: Known, best: Keys) -> bool:
    """Whether every heavier combination that the rules allow holds a set that failed."""
    open_ = heaviest(known.problem, known.failing(), known.given_up())
    return open_ is None or known.problem.weight(open_) <= known.problem.weight(best)


def _implied(known: Known, best: Keys, level: str) -> Iterable[Claim]:
    """That nothing heavier can start, or the launches that speak against the reasoning."""
    problem = known.problem
    top = heaviest(problem)
    if level == "proved" and problem.goal != "best" and not known.failing():
        yield Claim(
            kind=Kind.IMPLIED,
            say="No combination that the rules allow fails: each lies inside one that started, if "
            "adding a flag never repairs a failure.",
        )
    if top == best and best != problem.keys():
        yield Claim(kind=Kind.SHOWN, say="The rules allow no heavier combination.")
    elif top != best and barred(known, best) and not problem.noise and not problem.repairs:
        yield Claim(
            kind=Kind.IMPLIED,
            say="Every heavier combination that the rules allow holds a set that failed, so none "
            "of them starts, if adding a flag never repairs a failure.",
        )
        yield from _only_assumed(known, best)
    for good in known.starting():
        for bad in known.failing():
            if bad < good:
                yield Claim(
                    kind=Kind.SHOWN,
                    say=f"Here adding a flag did repair a failure: {braces(good, known.problem)} "
                    f"started (trial {known.resolved[good].number}) though "
                    f"{braces(bad, known.problem)} fails (trial {known.resolved[bad].number}); "
                    "so what was not launched may start after all.",
                )
                return


def _likely(known: Known, best: Keys, suspects: Sequence[Suspected], level: str) -> Iterable[Claim]:
    """What holds under the model of the search only, and what the launches point at."""
    problem = known.problem
    if level == "97%" and problem.goal == "best" and not barred(known, best):
        yield Claim(
            kind=Kind.NOT_SHOWN,
            say="That no heavier combination starts is 97 % likely under the model (causes of a "
            "few flags each); no launch shows it.",
        )
    for one in suspects:
        if not one.minimal and one.chance >= NOTABLE:
            alone = "is a smallest set that fails" if one.shown else "alone fails"
            yield Claim(
                kind=Kind.NOT_SHOWN,
                say=f"Suspected: {braces(one.items, problem)} {alone} with {one.signature} "
                f"({one.chance:.0%} under the model); a launch would show it.",
            )


def _only_assumed(known: Known, best: Keys) -> Iterable[Claim]:
    """The heaviest combination that nothing but assumed answers speaks against."""
    problem = known.problem
    recorded = [keys for keys in known.failing() if known.resolved[keys].provenance != "assumed"]
    open_ = heaviest(problem, recorded)
    if open_ is not None and problem.weight(open_) > problem.weight(best):
        yield Claim(
            kind=Kind.ASSUMED,
            say=f"Only assumed answers speak against {braces(open_, problem)}, which would keep "
            f"{problem.weight(open_):g} instead of {problem.weight(best):g}; a real launch of it "
            "would show whether it starts.",
        )


def _not_shown(known: Known) -> Iterable[Claim]:
    """Subsets without an answer, and what no trial of a search can show."""
    problem = known.problem
    for a, b, number in known.learned:
        yield Claim(
            kind=Kind.SHOWN,
            say=f"{a} needs {b}: without it the engine turned trial {number} down.",
        )
    for keys in known.given_up():
        yield Claim(
            kind=Kind.NOT_SHOWN,
            say=f"{braces(keys, problem)} stayed unresolved; another launch would show it.",
        )
    unasked = _unasked(known)
    if unasked:
        names = ", ".join(braces(keys, problem) for keys in unasked)
        what = names if len(unasked) <= NAMED else f"{len(unasked)} combinations"
        yield Claim(kind=Kind.NOT_SHOWN, say=f"Not launched: {what}.")
    for entry in known.resolved.values():
        if entry.confounded:
            pin = pin_text(entry.moved)
            yield Claim(
                kind=Kind.NOT_SHOWN,
                say=f"Trial {entry.number} is confounded: "
                f"{'; '.join(map(moved_text, entry.moved))}. Its verdict is about all of it"
                + (f"; with {pin} in the recipe every launch has it." if pin else "."),
            )
    if any(e.simulated for e in known.resolved.values()):
        yield Claim(
            kind=Kind.NOT_SHOWN,
            say="Every answer above was simulated; a launch on the machine itself would show it.",
        )


def _unasked(known: Known) -> list[Keys]:
    """Allowed subsets of which the journal holds no attempt, heaviest first; [] if too many."""
    problem = known.problem
    if len(problem.items) > COUNTABLE:
        return []
    every: list[Keys] = [frozenset()]
    for item in problem.items:
        every += [keys | {item.key} for keys in every]
    return sorted(
        (
            keys
            for keys in every
            if problem.allowed(keys) and keys not in known.resolved and keys not in known.lost
        ),
        key=lambda keys: rank(problem, keys),
    )

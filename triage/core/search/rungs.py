"""What is asked before anything is launched: the checks of the engine, or the rules about them.

In:  a Problem; an oracle that says at once whether the engine refuses a subset, and how.
Out: the subsets to ask, and what the answers show: refused sets that are minimal.
Not: asking (triage.session.ladder), or which launch is worth making (plan.py).

An answer costs a tenth of a second, so nothing is weighed: the heaviest subset is asked, and of
what is refused every item is taken away that the refusal does not need, until the heaviest
subset without a refused one is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triage.core.search.subsets import Keys, heaviest, less, one_smaller
from triage.core.trials import Entry, Problem

# What each rung cannot see. A failure that it shows is real all the same.
MASKS = {
    "static": "everything but the rules that triage knows of this version",
    "resolution": "everything after the engine's own checks: tokenizer, devices, weights, memory, "
    "graphs, the first request",
    "twin": "weights that are missing, torn or of another shape; a lack of memory; what only some "
    "layers or batch sizes do; how layers are split over stages",
    "full": "load: one request at a time was answered",
}
RUNGS = tuple(MASKS)
MOST = 400  # questions before the search goes on with launches
SETS = 40  # refused sets; more than that nobody reads

# Signature of the refusal, None if it is accepted or nobody knows.
Oracle = Callable[[Keys], str | None]


@dataclass(frozen=True, slots=True)
class Refused:
    """A subset that the engine refuses; with any one item less it does not, or in another way."""

    items: Keys
    signature: str
    smaller: tuple[Keys, ...]  # the allowed subsets with one item less


def refused_sets(problem: Problem, oracle: Oracle) -> tuple[Refused, ...]:
    """The minimal refused sets that stand between what is wanted and the heaviest accepted subset.

    None where the wanted configuration is accepted. If the baseline is refused it is the only one.
    """
    asked: dict[Keys, str | None] = {}

    def ask(keys: Keys) -> str | None:
        if keys not in asked:
            asked[keys] = oracle(keys) if len(asked) < MOST else None
        return asked[keys]

    found: dict[Keys, Refused] = {}
    while len(found) < SETS:
        keys = heaviest(problem, list(found))
        if keys is None or (signature := ask(keys)) is None:
            break
        least = _shrunk(problem, keys, signature, ask)
        found[least] = Refused(least, signature, _smaller(problem, least))
        if not least:
            break
    for keys, signature in _pairs(problem, ask):
        if not any(other <= keys for other in found):
            found[keys] = Refused(keys, signature, _smaller(problem, keys))
    return tuple(found.values())


def _smaller(problem: Problem, keys: Keys) -> tuple[Keys, ...]:
    return tuple(smaller for _, smaller in one_smaller(problem, keys))


def _shrunk(problem: Problem, keys: Keys, signature: str, ask: Oracle) -> Keys:
    """A smallest subset of these that is refused in the same way."""
    if ask(frozenset()) == signature:
        return frozenset()
    for item in sorted(keys):
        if item in keys and ask(smaller := less(problem, keys, item)) == signature:
            keys = smaller
    return keys


def _pairs(problem: Problem, ask: Oracle) -> list[tuple[Keys, str]]:
    """For a search of all failures: items and pairs that are refused, whatever hides them.

    Only then: a refusal that is met later costs no launch either.
    """
    if problem.goal != "all":
        return []
    names = [item.key for item in problem.items]
    every = [frozenset([a]) for a in names]
    every += [frozenset([a, b]) for i, a in enumerate(names) for b in names[i + 1 :]]
    found: list[tuple[Keys, str]] = []
    for keys in every:
        if not problem.allowed(keys) or any(other <= keys for other, _ in found):
            continue
        if (signature := ask(keys)) is not None:
            found.append((keys, signature))
    return found


@dataclass(frozen=True, slots=True)
class Spent:
    """What a journal cost, and what its cheaper rungs saved."""

    launches: int = 0
    asked: int = 0  # answers without a launch
    twins: int = 0
    seconds: float = 0.0  # of launches and questions
    saved_launches: int = 0
    saved_s: float = 0.0  # at least
    rungs: tuple[str, ...] = ()  # that answered, the cheapest first


def spent(journal: Sequence[Entry]) -> Spent:
    """Launches and seconds of a journal, and how many the rungs below saved."""
    cheap = [entry for entry in journal if not entry.launched]
    return Spent(
        launches=len(journal) - len(cheap),
        asked=len(cheap),
        twins=sum(entry.rung == "twin" and entry.launched for entry in journal),
        seconds=sum(entry.seconds for entry in journal),
        saved_launches=sum(entry.saved_s > 0 for entry in cheap),
        saved_s=sum(entry.saved_s for entry in journal),
        rungs=tuple(rung for rung in RUNGS if any(entry.rung == rung for entry in journal)),
    )

"""A launch in one line: what, why, and what each answer would mean.

In:  a Belief, a Decision. Out: sentences.
Not: choosing (goals.py) or drawing (triage.render).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from triage.core.search.belief import Belief
from triage.core.search.candidates import candidates_of
from triage.core.search.goals import Decision
from triage.core.search.joint import NEVER, UNSEEN
from triage.core.trials import Problem
from triage.core.wording import join, listed

TOLD = 0.08  # an answer less likely than this is not spelled out
ANSWERS = 2  # so many are, the likeliest
MOSTLY = 0.5
NAMED = 3  # items; more of a cause's are counted


def what(problem: Problem, keys: Iterable[str]) -> str:
    """A launch by the shorter of what it has and what it lacks."""
    chosen = frozenset(keys)
    wanted = problem.keys()
    gone, repairs = wanted - chosen, chosen - wanted
    if not gone and wanted:
        said = "everything wanted"
    elif len(gone) < len(chosen & wanted):
        said = f"all but {join(gone, problem)}"
    else:
        said = join(chosen & wanted, problem)
    names = [item.key for item in problem.repairs if item.key in repairs]
    return f"{said} with {listed(names)}" if names else said


def why(belief: Belief, decision: Decision, problem: Problem) -> str:
    """The reason of a launch, ending with what its answers would mean."""
    mask = decision.mask or 0
    keys = belief.space.items(mask)
    said = what(problem, keys)
    worth = f"{problem.weight(keys):g} of {problem.weight(problem.keys()):g} by weight"
    match decision.kind:
        case "finish":
            share = _share(belief, mask)
            lead = f"Does {said} start ({worth})? {share}"
        case "bar":
            lead = f"Does {said} fail? Then nothing that holds it needs a launch."
        case "cause":
            lead = f"Does {said} fail by itself? It is what the answers so far point at."
        case "again":
            lead = f"Once more {said}: two answers contradict each other, and this one may be luck."
        case "beside":
            lead = f"Does {said} start? At the same time, it tells most beside the others."
        case "between":
            lead = f"Does {said} start? A flag that is wanted repairs a failure; this tells which."
        case "audit":
            lead = (
                f"Does {said} start ({worth})? It holds a set that failed, so it fails if adding "
                "a flag never repairs a failure."
            )
        case "reduce":
            lead = (
                f"Does {said} fail? No cause of a few flags explains the answers, so what fails "
                "is halved."
            )
        case _:
            lead = f"Does {said} start? It halves what is still possible."
    return " ".join([lead, *_answers(belief, mask)])


def _share(belief: Belief, mask: int) -> str:
    at = np.nonzero(belief.actions.mask == np.uint64(mask))[0]
    if not len(at) or not belief.explained:
        return "Nothing worth more can start." if belief.best is None else ""
    chance = float(belief.actions.share[at[0]])
    return f"It is the best configuration in {chance:.0%} of what is still possible."


def _answers(belief: Belief, mask: int) -> list[str]:
    """What a start, and the failures that are likely, would point at; the rest in one clause."""
    h = belief.hypotheses
    if not belief.explained:
        return []
    codes = h.outcomes(np.array([mask], dtype=np.uint64))[0]
    names = belief.evidence.names
    groups: dict[str, np.ndarray] = {}
    for code in np.unique(codes).tolist():
        if code > len(names):
            answer = "if it fails in a new way"
        else:
            answer = f"if it fails with {names[code - 1]}" if code else "if it starts"
        groups[answer] = groups.get(answer, np.zeros(len(h), dtype=bool)) | (codes == code)
    told = sorted(
        ((float(h.weight[rows].sum()), answer) for answer, rows in groups.items()), reverse=True
    )
    said = [
        f"{answer} ({chance:.0%}), {_points_at(belief, groups[answer])}"
        for chance, answer in told[:ANSWERS]
        if chance >= TOLD
    ]
    text = "; ".join(said)
    return [f"{text[0].upper()}{text[1:]}."] if text else []


def _points_at(belief: Belief, rows: np.ndarray) -> str:
    """The likeliest cause if most of these hypotheses share one, or how many are left."""
    h = belief.hypotheses
    seen = rows[:, None] & (h.mask != NEVER) & (h.failure != UNSEEN)
    weight = np.broadcast_to(h.weight[:, None], seen.shape)[seen]
    pairs = np.stack([h.place[seen], h.failure[seen]], axis=1)
    kinds, back = np.unique(pairs, axis=0, return_inverse=True)
    if not len(kinds):
        return "the cause is one not seen yet"
    chances = np.bincount(back.ravel(), weights=weight) / float(h.weight[rows].sum())
    top = int(chances.argmax())
    if chances[top] < MOSTLY:
        return f"{len(set(kinds[:, 0].tolist()))} possible causes are left"
    place, d = kinds[top].tolist()
    mask = int(candidates_of(belief.space).masks[place])
    return f"{belief.evidence.names[d]} is probably {_cause(belief, mask)}"


def _cause(belief: Belief, mask: int) -> str:
    space = belief.space
    keys = [space.keys[j] for j in space.bits(mask & ~space.repairs)]
    if len(keys) > NAMED:
        return f"a set of {len(keys)} flags with {keys[0]}"
    return " + ".join(keys)

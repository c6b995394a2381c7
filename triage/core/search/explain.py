"""A launch in one line: what, why, and what each answer would mean.

In:  a Belief, a Decision. Out: sentences.
Not: choosing (goals.py) or drawing (triage.render).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from triage.core.search.belief import Belief
from triage.core.search.goals import Decision
from triage.core.search.joint import NEVER, UNSEEN
from triage.core.trials import Problem
from triage.core.wording import join, listed

TOLD = 0.08  # an answer less likely than this is not spelled out
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
    """What a start, and each failure that is likely, would point at."""
    h = belief.hypotheses
    if not belief.explained:
        return []
    codes = h.outcomes(np.array([mask], dtype=np.uint64))[0]
    names = belief.evidence.names
    said: list[str] = []
    groups: list[tuple[float, str, np.ndarray]] = []
    for code in np.unique(codes[codes <= len(names)]):
        rows = codes == code
        answer = "If it starts" if code == 0 else f"if it fails with {names[code - 1]}"
        groups.append((float(h.weight[rows].sum()), answer, rows))
    new = codes > len(names)
    if new.any():
        groups.append((float(h.weight[new].sum()), "if it fails in a new way", new))
    for chance, answer, rows in groups:
        if chance >= TOLD:
            said.append(f"{answer} ({chance:.0%}), {_points_at(belief, rows)}")
    text = "; ".join(said)
    return [f"{text[0].upper()}{text[1:]}."] if text else []


def _points_at(belief: Belief, rows: np.ndarray) -> str:
    """The causes that most of these hypotheses share, or how many sorts of them are left."""
    h = belief.hypotheses
    total = float(h.weight[rows].sum())
    chances: dict[tuple[int, int], float] = {}
    for row in np.nonzero(rows)[0]:
        for m, d in zip(h.mask[row].tolist(), h.failure[row].tolist(), strict=True):
            if m != int(NEVER) and d != UNSEEN:
                chances[m, d] = chances.get((m, d), 0.0) + float(h.weight[row]) / total
    sure = sorted((c for c in chances if chances[c] >= MOSTLY), key=lambda c: (-chances[c], c))
    if sure:
        return "; ".join(
            f"{belief.evidence.names[d]} is probably {_cause(belief, m)}" for m, d in sure[:2]
        )
    return f"{len({m for m, _ in chances})} possible causes are left"


def _cause(belief: Belief, mask: int) -> str:
    space = belief.space
    keys = [space.keys[j] for j in space.bits(mask & ~space.repairs)]
    if len(keys) > NAMED:
        return f"a set of {len(keys)} flags with {keys[0]}"
    return " + ".join(keys)

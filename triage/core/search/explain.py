"""A launch in one line: what, why, and what each answer would mean.

In:  a Belief, a Decision. Out: sentences.
Not: choosing (goals.py) or drawing (triage.render).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from triage.core.search.actions import CLOSE
from triage.core.search.belief import Belief
from triage.core.search.candidates import candidates_of
from triage.core.search.goals import Decision
from triage.core.search.joint import NEVER, UNSEEN
from triage.core.trials import Problem
from triage.core.wording import join, listed

TOLD = 0.08  # an answer less likely than this is not spelled out
ANSWERS = 2  # so many are, the likeliest
MOSTLY = 0.5
NAMED = 60  # letters of a cause's items; of a longer one all but the first are counted
WIDEST = 220  # letters of a reason


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
    """The reason of a launch, and what its likely answers would mean; what it has is not said."""
    mask = decision.mask or 0
    keys = belief.space.items(mask)
    worth = f"keeps {problem.weight(keys):g} of {problem.weight(problem.keys()):g}"
    match decision.kind:
        case "finish":
            lead = f"{_share(belief, mask)}; {worth}."
        case "bar":
            lead = "If it fails, nothing that holds it needs a launch."
        case "cause":
            lead = "What the answers so far point at: does it fail by itself?"
        case "less":
            lead = (
                "A failing set less one of its flags: if it fails so too, the set is not smallest."
            )
        case "again":
            lead = "Once more: two answers contradict each other, and this one may be luck."
        case "confirm":
            lead = (
                f"Once more, as launches often miss a failure here: does it start again? {worth}."
            )
        case "beside":
            lead = "At the same time: it tells most beside the others."
        case "between":
            lead = "A flag that is wanted repairs a failure; this tells which."
        case "audit":
            lead = f"It holds a set that failed: does a flag repair that? It {worth}."
        case "reduce":
            lead = "No cause of a few flags explains the answers, so what fails is halved."
        case _:
            lead = "It halves what is still possible."
    if decision.kind == "audit":
        return lead  # what is believed holds no repair, so it foretells nothing here
    ends = decision.kind == "finish" and _ends(belief, mask) and "nothing better is likely then"
    return " ".join([lead, *_answers(belief, mask, WIDEST - len(lead), ends or "")])


def _ends(belief: Belief, mask: int) -> bool:
    """Whether it is likely, once the launch started, that nothing worth more starts."""
    if not belief.explained:
        return False
    starts = 1 - belief.hypotheses.fails(np.array([mask], dtype=np.uint64))[0]
    left = starts * belief.hypotheses.weight
    better = belief.actions.best > belief.space.value(mask) + CLOSE
    return float(left[better].sum()) <= MOSTLY * float(left.sum())


def _share(belief: Belief, mask: int) -> str:
    at = np.nonzero(belief.actions.mask == np.uint64(mask))[0]
    if not len(at) or not belief.explained:
        return "Nothing worth more can start"
    return f"The best in {float(belief.actions.share[at[0]]):.0%} of what is still possible"


def _answers(belief: Belief, mask: int, room: int, ends: str) -> list[str]:
    """What a start, and the failures that are likely, would point at, in so many letters.

    `ends` is what a start would mean if it is likely to end the search.
    """
    h = belief.hypotheses
    if not belief.explained:
        return []
    codes = h.outcomes(np.array([mask], dtype=np.uint64))[0]
    names = belief.evidence.names
    groups: dict[str, np.ndarray] = {}
    for code in np.unique(codes).tolist():
        answer = (
            names[code - 1] if 0 < code <= len(names) else "a new failure" if code else "starts"
        )
        groups[answer] = groups.get(answer, np.zeros(len(h), dtype=bool)) | (codes == code)
    told = sorted(
        ((float(h.weight[rows].sum()), answer) for answer, rows in groups.items()), reverse=True
    )[:ANSWERS]
    means = [
        (answer, chance, *_points_at(belief, groups[answer]))
        for chance, answer in told
        if chance >= TOLD
    ]
    if ends:
        means = [
            (answer, chance, "", ends) if answer == "starts" else (answer, chance, failure, cause)
            for answer, chance, failure, cause in means
        ]
    if len(means) == ANSWERS and means[0][2:] == means[1][2:] and means[0][3]:
        either = " or ".join(f"{answer} ({chance:.0%})" for answer, chance, _, _ in means)
        return [_sentence(f"{either}: {means[0][2]} is probably {means[0][3]}")]
    found: list[str] = []
    last = ""
    for answer, chance, failure, cause in means:
        # A name that was just said is not said again.
        shown = "that" if failure and failure in (answer, last) else failure
        said = f"{shown} is probably {cause}" if failure else cause
        text = _sentence(f"{answer} ({chance:.0%}): {said}")
        last = failure
        if found and len(" ".join([*found, text])) > room:
            break
        found.append(text)
    return [" ".join(found)] if found else []


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text.startswith(("starts", "a new")) else f"{text}."


def _points_at(belief: Belief, rows: np.ndarray) -> tuple[str, str]:
    """(failure, its likeliest cause) if most of these hypotheses share one; else ("", in words)."""
    h = belief.hypotheses
    seen = rows[:, None] & (h.mask != NEVER) & (h.failure != UNSEEN)
    weight = np.broadcast_to(h.weight[:, None], seen.shape)[seen]
    pairs = np.stack([h.place[seen], h.failure[seen]], axis=1)
    kinds, back = np.unique(pairs, axis=0, return_inverse=True)
    if not len(kinds):
        return "", "the cause is one not seen yet"
    chances = np.bincount(back.ravel(), weights=weight) / float(h.weight[rows].sum())
    top = int(chances.argmax())
    if chances[top] < MOSTLY:
        return "", f"{len(set(kinds[:, 0].tolist()))} causes are left"
    place, d = kinds[top].tolist()
    mask = int(candidates_of(belief.space).masks[place])
    return belief.evidence.names[d], _cause(belief, mask)


def _cause(belief: Belief, mask: int) -> str:
    space = belief.space
    keys = [space.keys[j] for j in space.bits(mask & ~space.repairs)]
    said = " + ".join(keys)
    if len(keys) > 1 and len(said) > NAMED:
        return f"{keys[0]} + {len(keys) - 1} more"
    return said

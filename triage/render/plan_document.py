"""What a search would launch next, as a document and as text.

In:  a Problem, its journal, what the planner said. Out: `triage.plan/1`, lines for people.
Not: planning (triage.core.search.plan) or launching (triage.session).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from triage.core.search.explain import what
from triage.core.search.pace import Outlook, span
from triage.core.trials import Done, Entry, Problem, Trial
from triage.render.documents import Json, config_document


def plan_document(
    session: Path,
    problem: Problem,
    journal: Sequence[Entry],
    trials: Sequence[Trial],
    *,
    ended: Done | None,
    ahead: Outlook,
    source: str,
) -> dict[str, Json]:
    """`triage.plan/1`: the next trials and why, or why there is none.

    Args:
        session: Its folder.
        problem: Without secrets.
        journal: What was launched so far.
        trials: What the planner asks for, also if it has to end before.
        ended: Why nothing is launched any more.
        ahead: What is left of the search.
        source: Where the seconds of a launch are from, "" if they are not known.
    """
    minutes = ahead.minutes
    return {
        "schema": "triage.plan/1",
        "session": str(session),
        "name": problem.name,
        "goal": problem.goal,
        "made": len(journal),
        "forecast": {
            "fewest": len(journal) + ahead.fewest,
            "most": ahead.total,
            "minutes": None if minutes is None else round(minutes[1], 1),
            "source": source,
        },
        "trials": [
            {
                "number": len(journal) + place,
                "items": list[Json](sorted(trial.items)),
                "config": config_document(problem.config(trial.items)),
                "why": trial.why,
                "searching": trial.searching,
            }
            for place, trial in enumerate(trials, 1)
        ],
        "ended": None
        if ended is None
        else {"reason": ended.reason, "level": ended.level, "say": ended.say},
    }


def plan_text(
    problem: Problem,
    journal: Sequence[Entry],
    trials: Sequence[Trial],
    *,
    ended: Done | None,
    ahead: Outlook,
    source: str,
) -> str:
    """The same for people."""
    long = "" if ahead.minutes is None else f", {span(ahead.minutes[1])} more at most ({source})"
    fewest = len(journal) + ahead.fewest
    lines = [f"{len(journal)} trials made; {fewest} to {ahead.total} in all{long}."]
    if ended is not None:
        lines = [f"{len(journal)} trials made; it has ended ({ended.reason}): {ended.say}"]
    for place, trial in enumerate(trials, 1):
        lines += [f"next, launch {len(journal) + place}: {what(problem, trial.items)}", trial.why]
    return "\n".join(lines)

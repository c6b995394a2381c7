"""The first lines of a runbook: three sentences, and the answer in brief.

In:  an Investigation. Out: sentences; names and values.
Not: the sections below them (runbook.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from triage.core.diagnosis import Diagnosis
from triage.core.handover.investigation import Investigation
from triage.core.search.journal import signature
from triage.core.trials import Entry, FailingSet, Seen
from triage.core.units import format_seconds
from triage.core.wording import braces, listed, spell, spell_setting

_ENDED = {
    "failed": "failed",
    "hung": "hung",
    "healthy": "came up",
    "interrupted": "was interrupted",
    "empty": "left an empty log",
}


def summary(found: Investigation) -> tuple[str, str, str]:
    """Three sentences: what failed and why, what the search showed, what to do."""
    return (_failed(found), _searched(found), _answer(found))


def facts(found: Investigation) -> tuple[tuple[str, str], ...]:
    """The answer at a glance."""
    told, plan = found.diagnosis, found.recommendation
    rows: list[tuple[str, str]] = []
    if told is not None:
        rows.append(("cause", cause_of(told)))
        if told.phase != "unknown":
            rows.append(("phase", told.phase))
        if told.ranks:
            first = f"{told.root.rank} first" if told.root and told.ranks == ("all",) else ""
            rows.append(("ranks", f"{ranks_of(told)}{f' ({first})' if first else ''}"))
    if plan.sets:
        rows.append(("failing sets", "; ".join(braces(s.items, found.problem) for s in plan.sets)))
    rows.append(("proposal", _proposal(found) or "none"))
    rows.append(("proof", proved(found)))
    return tuple(rows)


def searched_failure(journal: Sequence[Entry]) -> str | None:
    """The failure that the search set out to explain: the first one seen."""
    return next((signature(e) for e in journal if e.seen is Seen.FAILS), None)


def ranks_of(told: Diagnosis) -> str:
    """The ranks that failed, as people say it."""
    if told.ranks == ("all",):
        return "all ranks"
    of = f" of {told.ranks_total} ranks" if told.ranks_total > 1 else ""
    return ", ".join(told.ranks) + of


def cause_of(told: Diagnosis) -> str:
    """The cause and how sure it is, or the fingerprint of a failure without one."""
    if told.cause:
        return f"{told.cause} ({told.confidence} confidence)"
    if told.fingerprint:
        return f"not known; fingerprint {told.fingerprint}"
    return "the log names none"


def proved(found: Investigation) -> str:
    """How far the proposal is proved; "works" only after a confirmation."""
    shown, plan = found.confirmation, found.recommendation
    if plan.config is None:
        return "none: no configuration has started"
    how = "simulated " if found.simulated else ""
    if shown is not None and shown.confirmed:
        return f"works: a {how}launch answered prompts, the same twice"
    if shown is not None:
        return f"not confirmed: {shown.reason or 'its answers do not agree'}"
    return f"started in {how}trial {plan.proof}; not confirmed yet"


def _failed(found: Investigation) -> str:
    problem, told = found.problem, found.diagnosis
    chosen = problem.keys() if found.diagnosed is None else found.diagnosed
    names = [spell(i.change) for i in problem.choices() if i.key in chosen]
    what = f"The launch with {listed(names)} on top of the baseline" if names else "The baseline"
    if told is None:
        if not problem.allowed(chosen):
            return f"{what} is wanted; the rules do not allow all of that at once."
        return f"{what} is wanted, and no log of its failure was given."
    at = f" in phase {told.phase}" if told.phase != "unknown" else ""
    ranks = f", on {ranks_of(told)}" if told.ranks else ""
    title = told.title.rstrip(".") or ("an unknown failure" if told.fingerprint else "")
    return (
        f"{what} {_ENDED.get(told.outcome, told.outcome)}{at}{ranks}"
        f"{f': {title} ({told.signature})' if title else ''}."
    )


def _searched(found: Investigation) -> str:
    journal, sets = found.journal, found.recommendation.sets
    took = format_seconds(sum(e.seconds for e in journal))
    count = f"{len(journal)} {'trial' if len(journal) == 1 else 'trials'} in {took}"
    if not sets:
        return f"{count} showed no failing set."
    named = [f"{braces(s.items, found.problem)} ({_basis(s)})" for s in sets]
    kinds = len({s.signature for s in sets})
    what = (
        "one minimal failing set"
        if len(sets) == 1
        else f"{len(sets)} minimal failing sets of {kinds} different failures"
        if kinds > 1
        else f"{len(sets)} minimal failing sets"
    )
    return f"{count} found {what}: {listed(named)}."


def _basis(s: FailingSet) -> str:
    return f"{s.signature}{', assumed' if s.assumed else ''}"


def _answer(found: Investigation) -> str:
    plan = found.recommendation
    if plan.config is None:
        first, *rest = plan.say.split(". ")
        return "; ".join([first, *(part[:1].lower() + part[1:] for part in rest)])
    more = " The search has not ended." if plan.reason in {"budget", "unfinished"} else ""
    return f"Proposed: {_proposal(found)}; {proved(found)}.{more}"


def _proposal(found: Investigation) -> str:
    """What becomes of what was wanted: kept, dropped, changed, added."""
    plan = found.recommendation
    if plan.config is None:
        return ""
    wanted = {item.key for item in found.problem.choices()}
    said = []
    for verb, choices in (
        ("keep", [c for c in plan.keep if c.key in wanted]),
        ("drop", plan.drop),
        ("change", plan.change),
        ("add", plan.add),
    ):
        if choices:
            said.append(f"{verb} {listed([spell_setting(c.key, c.value) for c in choices])}")
    return "; ".join(said) or "the baseline alone"

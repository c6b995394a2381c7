"""JSON documents of a search: its trials, its recommendation, its confirmation.

In:  entries, a Recommendation, a Confirmation. Out: dicts of plain JSON values, whose
first key is `schema`; the same input gives the same bytes.
Not: the diagnosis (documents.py) or writing files (triage.store).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from triage.core.config import Config, Value
from triage.core.confirmation import Confirmation
from triage.core.recommend import Choice, Recommendation
from triage.core.trials import Entry, FailingSet, Problem
from triage.core.wording import ENV

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


def trial_document(entry: Entry, problem: Problem) -> dict[str, Json]:
    """`triage.trial/1`: what was launched, why, and what it showed.

    `verdict` is about the failure in `searching`; seconds are wall time.
    """
    return {
        "schema": "triage.trial/1",
        "number": entry.number,
        "items": _keys(entry.items, problem),
        "config": config_document(entry.config),
        "why": entry.why,
        "searching": entry.searching,
        "verdict": entry.verdict(entry.searching).value,
        "seen": entry.seen.value,
        "signature": entry.signature,
        "cause": entry.cause,
        "title": entry.title,
        "phase": entry.phase,
        "ranks": list(entry.ranks),
        "seconds": entry.seconds,
        "reason": entry.reason,
        "early": entry.early,
        "provenance": entry.provenance,
        "simulated": entry.simulated,
        "effective": dict(sorted(entry.effective.items())),
        "confounded": list(entry.confounded),
        "suspects": list(entry.suspects),
        "log_digest": entry.log_digest,
    }


def recommendation_document(found: Recommendation, problem: Problem) -> dict[str, Json]:
    """`triage.recommendation/1`: keep, drop, change and add, the claims, the sets, the proof.

    `proof` is the number of the trial that started, null without a proposal.
    """
    return {
        "schema": "triage.recommendation/1",
        "name": problem.name,
        "reason": found.reason,
        "say": found.say,
        "simulated": found.simulated,
        "keep": [_choice(choice) for choice in found.keep],
        "drop": [_choice(choice) for choice in found.drop],
        "change": [_choice(choice) for choice in found.change],
        "add": [_choice(choice) for choice in found.add],
        "weight": {"kept": found.weight_kept, "wanted": found.weight_wanted},
        "claim": [{"kind": claim.kind.value, "say": claim.say} for claim in found.claims],
        "sets": [_set(one, problem) for one in found.sets],
        "proof": found.proof,
        "alternatives": [
            {"items": _keys(one.items, problem), "weight": one.weight, "trial": one.entry}
            for one in found.alternatives
        ],
        "config": None if found.config is None else config_document(found.config),
    }


def confirmation_document(shown: Confirmation, problem: Problem) -> dict[str, Json]:
    """`triage.confirmation/1`: the launch of the proposal and the answers that it gave.

    `ready_s` is null if it never answered.
    """
    return {
        "schema": "triage.confirmation/1",
        "name": problem.name,
        "confirmed": shown.confirmed,
        "reason": shown.reason,
        "items": _keys(shown.items, problem),
        "config": config_document(shown.config),
        "ready_s": shown.ready_s,
        "temperature": 0,
        "exchanges": [
            {"prompt": e.prompt, "answers": list(e.answers), "agree": e.agree}
            for e in shown.exchanges
        ],
        "agree": shown.agree,
        "trial": shown.folder,
        "simulated": shown.simulated,
        "provenance": shown.provenance,
    }


def config_document(config: Config) -> dict[str, Json]:
    """Flags and environment as two objects; a switch is true, a list flag a list."""
    flags: Mapping[str, Value] = config.flag_values()
    return {
        "flags": {name: _value(value) for name, value in flags.items()},
        "env": dict(config.env),
    }


def _value(value: Value) -> Json:
    return list(value) if isinstance(value, tuple) else value


def _keys(keys: Iterable[str], problem: Problem) -> list[Json]:
    """Item keys in the order of the problem; those that it does not know come last."""
    place = {item.key: n for n, item in enumerate(problem.items)}
    ordered = sorted(keys, key=lambda key: (place.get(key, len(place)), key))
    return list[Json](ordered)


def _choice(choice: Choice) -> dict[str, Json]:
    name = (
        {"env": choice.key.removeprefix(ENV)}
        if choice.key.startswith(ENV)
        else {"flag": choice.key}
    )
    return {**name, "value": _value(choice.value), "why": choice.why, "price": choice.price}


def _set(one: FailingSet, problem: Problem) -> dict[str, Json]:
    return {
        "items": _keys(one.items, problem),
        "signature": one.signature,
        "cause": one.cause,
        "title": one.title,
        "phase": one.phase,
        "trial": one.entry,
        "minimal": one.minimal,
        "assumed": one.assumed,
    }

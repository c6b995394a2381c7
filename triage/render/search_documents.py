"""JSON documents of a search: its trials, its recommendation.

In:  entries, a Recommendation. Out: dicts of plain JSON values, whose first key is
`schema`; the same input gives the same bytes.
Not: the diagnosis (documents.py), a confirmation (confirmation.py) or writing files
(triage.store).
"""

from __future__ import annotations

from collections.abc import Iterable

from triage.core.search.recommend import Choice, Recommendation
from triage.core.search.rungs import MASKS
from triage.core.trials import Entry, FailingSet
from triage.core.wording import ENV, WITHOUT
from triage.render.documents import Json, config_document, value_document


def trial_document(entry: Entry) -> dict[str, Json]:
    """`triage.trial/1`: what was launched, why, and what it showed.

    `verdict` is about the failure in `searching`; seconds are wall time.
    """
    return {
        "schema": "triage.trial/1",
        "number": entry.number,
        "items": _keys(entry.items),
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
        "moved": [
            {
                "name": moved.name,
                "before": moved.before,
                "after": moved.after,
                "against": moved.against or None,
                "with": list[Json](moved.by),
            }
            for moved in entry.moved
        ],
        "suspects": list(entry.suspects),
        "log_digest": entry.log_digest,
        "rung": entry.rung,
        "resolved_key": entry.resolved_key,
        "same_as": entry.same_as,
        "saved_seconds": entry.saved_s,
        "masks": MASKS["full" if entry.same_as else entry.rung],
    }


def recommendation_document(found: Recommendation) -> dict[str, Json]:
    """`triage.recommendation/1`: keep, drop, change and add, the claims, the sets, the proof.

    `proof` is the number of the trial that started, null without a proposal.
    """
    return {
        "schema": "triage.recommendation/1",
        "reason": found.reason,
        "say": found.say,
        "level": found.level,
        "simulated": found.simulated,
        "keep": [_choice(choice) for choice in found.keep],
        "drop": [_choice(choice) for choice in found.drop],
        "change": [_choice(choice) for choice in found.change],
        "add": [_choice(choice) for choice in found.add],
        "weight": {"kept": found.weight_kept, "wanted": found.weight_wanted},
        "claim": [{"kind": claim.kind.value, "say": claim.say} for claim in found.claims],
        "sets": [_set(one) for one in found.sets],
        "proof": found.proof,
        "alternatives": [
            {"items": _keys(one.items), "weight": one.weight, "trial": one.entry}
            for one in found.alternatives
        ],
        "config": None if found.config is None else config_document(found.config),
        "spent": {
            "launches": found.spent.launches,
            "without_launch": found.spent.asked,
            "twins": found.spent.twins,
            "seconds": round(found.spent.seconds, 1),
            "saved_launches": found.spent.saved_launches,
            "saved_seconds": round(found.spent.saved_s, 2),
        },
        "implied": None
        if found.implied is None
        else {
            "asked": found.implied.asked,
            "fails": found.implied.fails,
            "starts": found.implied.starts,
            "open": found.implied.open,
        },
    }


def _keys(keys: Iterable[str]) -> list[Json]:
    """Item keys by name, so that equal sets are equal lists."""
    return list[Json](sorted(keys))


def _choice(choice: Choice) -> dict[str, Json]:
    kind = "flag"
    name = choice.key
    if name.startswith(WITHOUT):
        kind, name = "unset", name.removeprefix(WITHOUT)
    elif name.startswith(ENV):
        kind, name = "env", name.removeprefix(ENV)
    # A variable is text, whatever it looks like.
    value: Json = str(choice.value) if kind == "env" else value_document(choice.value)
    return {kind: name, "value": value, "why": choice.why, "price": choice.price}


def _set(one: FailingSet) -> dict[str, Json]:
    return {
        "items": _keys(one.items),
        "signature": one.signature,
        "cause": one.cause,
        "title": one.title,
        "phase": one.phase,
        "trial": one.entry,
        "minimal": one.minimal,
        "assumed": one.assumed,
    }

"""JSON of a search: field for field what others read."""

from __future__ import annotations

import json

from triage.core.config import Config, SetEnv, SetFlag
from triage.core.search.recommend import recommend
from triage.core.trials import Entry, Item, Problem, Seen
from triage.render.search_documents import (
    recommendation_document,
    trial_document,
)

PROBLEM = Problem(
    name="t",
    baseline=Config.of({"tp-size": "8"}),
    items=(
        Item(key="z", change=SetFlag("z", ("1", "2"))),
        Item(key="env:A", change=SetEnv("A", "1"), weight=3),
    ),
)
JOURNAL = (
    Entry(number=1, items=frozenset(), seen=Seen.STARTS),
    Entry(
        number=2,
        items=frozenset({"env:A", "z"}),
        seen=Seen.FAILS,
        signature="boom",
        cause="boom",
        title="It goes boom",
        phase="graph-capture",
        ranks=("TP3",),
        seconds=12.5,
        config=Config.of({"z": ("1", "2")}, {"A": "1"}),
        effective={"b": "2", "a": "1"},
    ),
    Entry(number=3, items=frozenset({"env:A"}), seen=Seen.STARTS, searching="boom"),
    Entry(number=4, items=frozenset({"z"}), seen=Seen.FAILS, searching="boom", signature="boom"),
)


def test_a_trial_is_one_document() -> None:
    document = trial_document(JOURNAL[1])
    assert next(iter(document)) == "schema"
    assert document == {
        "schema": "triage.trial/1",
        "number": 2,
        "items": ["env:A", "z"],
        "config": {"flags": {"z": [1, 2]}, "env": {"A": "1"}},
        "why": "",
        "searching": None,
        "verdict": "SAME_FAILURE",
        "seen": "fails",
        "signature": "boom",
        "cause": "boom",
        "title": "It goes boom",
        "phase": "graph-capture",
        "ranks": ["TP3"],
        "seconds": 12.5,
        "reason": "",
        "early": False,
        "provenance": "launched",
        "simulated": False,
        "effective": {"a": "1", "b": "2"},
        "confounded": [],
        "moved": [],
        "suspects": [],
        "log_digest": "",
        "rung": "full",
        "resolved_key": "",
        "same_as": None,
        "saved_seconds": 0.0,
        "masks": "load: one request at a time was answered",
    }
    assert json.loads(json.dumps(document)) == document


def test_a_recommendation_keeps_drops_and_cites() -> None:
    document = recommendation_document(recommend(PROBLEM, JOURNAL))
    assert next(iter(document)) == "schema"
    assert document["schema"] == "triage.recommendation/1"
    assert document["reason"] == "found"
    assert document["keep"] == [
        {
            "flag": "tp-size",
            "value": 8,
            "why": "part of the baseline, which started",
            "price": "",
        },
        {"env": "A", "value": "1", "why": "part of what started in trial 3", "price": ""},
    ]
    assert document["drop"] == [
        {
            "flag": "z",
            "value": [1, 2],
            "why": "in the failing set {z}: boom (trial 4)",
            "price": "not known: no launch here measured what it brings",
        }
    ]
    assert (document["change"], document["add"]) == ([], [])
    assert document["weight"] == {"kept": 3, "wanted": 4}
    assert document["sets"] == [
        {
            "items": ["z"],
            "signature": "boom",
            "cause": None,
            "title": "",
            "phase": "unknown",
            "trial": 4,
            "minimal": True,
            "assumed": False,
        }
    ]
    assert document["proof"] == 3
    assert document["alternatives"] == [{"items": [], "weight": 0, "trial": 1}]
    assert document["config"] == {"flags": {"tp-size": 8}, "env": {"A": "1"}}
    assert json.loads(json.dumps(document)) == document


def test_no_proposal_is_null_not_an_empty_config() -> None:
    document = recommendation_document(recommend(PROBLEM, ()))
    assert (document["config"], document["proof"], document["keep"]) == (None, None, [])

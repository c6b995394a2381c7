"""The JSON contract of a diagnosis, key by key."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.core.config import Config, SetEnv, SetFlag, UnsetEnv, UnsetFlag, Value
from triage.core.diagnosis import (
    Advice,
    Alternative,
    Decoy,
    Diagnosis,
    Exc,
    Explained,
    Frame,
    Root,
    Step,
    Suspect,
    Weighed,
)
from triage.render.documents import diagnosis_document, value_document, value_of

KEYS = [
    "schema", "source", "outcome", "phase", "cause", "title", "confidence", "fingerprint", "ranks",
    "ranks_total", "root", "traceback", "cascade", "teardown", "decoys", "engine", "config",
    "effective", "suspects", "remedies", "timeline", "also", "starts", "came_up", "standstill", "outside",
    "explain", "fingerprint_of", "simulated",
    "provenance", "refused",
]  # fmt: skip
FULL = Diagnosis(
    source="server.log",
    outcome="failed",
    phase="graph-capture",
    cause="c",
    title="t",
    confidence="high",
    fingerprint="v1:0",
    fingerprint_of="x",
    ranks=("TP3",),
    ranks_total=8,
    root=Root(line=812, offset=93211, rank="TP3", time="2026-07-01T12:00:00", text="TypeError: x"),
    traceback=Exc(exception="TypeError", message="x", frames=(Frame(file="a", line=1, function="f"),)),
    cascade=(840, 871),
    teardown=(900,),
    decoys=(Decoy(line=813, why="w"),),
    engine="sglang",
    engine_version="0.5.23",
    simulated=True,
    provenance="assumed",
    config=Config.of({"ep-size": "8", "lora": ("a", "b"), "x": True}, {"A": "1"}),
    effective=(("ep-size", "8"),),
    suspects=(Suspect(flag="ep-size", value="8", why="w"),),
    remedies=(
        Advice(
            say="s",
            changes=(SetFlag("a", "1"), UnsetFlag("b"), SetEnv("C", "2"), UnsetEnv("D")),
            disposition="safe",
            cost="none",
            evidence="e",
        ),
    ),
    timeline=(Step(rank="TP0", phase="weight-load", line=41, seconds=12.3),),
    also=(Alternative(cause="o", confidence="low"),),
    explain=(Explained(step="root", lines=(Weighed(line=812, rank="TP3", what="c"),), count=1),),
)  # fmt: skip


def test_keys_stand_in_the_order_of_the_contract() -> None:
    assert list(diagnosis_document(FULL)) == KEYS
    assert list(diagnosis_document(Diagnosis(source="-", outcome="empty"))) == KEYS


def test_every_value_is_plain_json() -> None:
    document = json.loads(json.dumps(diagnosis_document(FULL)))
    assert document["schema"] == "triage.diagnosis/1"
    assert document["root"] == {
        "line": 812, "offset": 93211, "rank": "TP3", "time": "2026-07-01T12:00:00",
        "text": "TypeError: x",
    }  # fmt: skip
    assert document["traceback"]["frames"] == [{"file": "a", "line": 1, "function": "f"}]
    assert document["engine"] == {"name": "sglang", "version": "0.5.23"}
    assert document["config"] == {
        "flags": {"ep-size": 8, "lora": ["a", "b"], "x": True}, "env": {"A": "1"},
    }  # fmt: skip
    assert document["effective"] == {"ep-size": "8"}
    assert document["suspects"] == [{"flag": "ep-size", "value": 8, "why": "w"}]
    assert document["remedies"][0]["changes"] == [
        {"set": "a", "value": 1}, {"unset": "b"}, {"set_env": "C", "value": "2"},
        {"unset_env": "D"},
    ]  # fmt: skip
    assert document["timeline"] == [
        {"rank": "TP0", "phase": "weight-load", "line": 41, "seconds": 12.3}
    ]
    assert document["decoys"] == [{"line": 813, "why": "w"}]
    assert document["also"] == [{"cause": "o", "confidence": "low"}]
    assert (document["simulated"], document["provenance"]) == (True, "assumed")


def test_what_is_not_known_is_null() -> None:
    document = diagnosis_document(Diagnosis(source="-", outcome="empty"))
    assert (document["cause"], document["root"], document["traceback"]) == (None, None, None)
    assert document["fingerprint"] is None


@given(
    st.one_of(
        st.text(),
        st.booleans(),
        st.lists(st.text(), min_size=1).map(tuple),
        st.integers().map(str),
        st.floats().map(str),
    )
)
def test_a_value_survives_json(value: Value) -> None:
    assert value_of(json.loads(json.dumps(value_document(value)))) == value


@pytest.mark.parametrize(
    ("text", "number"),
    [("8", 8), ("0.1", 0.1), ("-1", -1), ("08", "08"), ("1e3", "1e3"), ("1_0", "1_0"), ("nan", "nan"),
     ("inf", "inf"), (" 8", " 8"), ("9007199254740993", "9007199254740993")],
)  # fmt: skip
def test_only_text_that_is_written_as_a_number_becomes_one(text: str, number: object) -> None:
    assert value_document(text) == number

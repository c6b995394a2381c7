"""Proposals as text and as a document: secrets stay hidden, facts and plans are said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from triage.core.config import Change, Config, SetEnv, SetFlag, UnsetEnv, UnsetFlag
from triage.core.handover.proposals import (
    Basis,
    Disposition,
    Kind,
    Proposal,
    Proposals,
    RuledOut,
    Span,
)
from triage.render.proposals import Shown, change_words, proposals_document, proposals_text

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "docs/schema/proposals-1.json").read_text(encoding="utf-8")
)
BASE = Config.of({"model-path": "/m", "ep-size": "8", "api-key": "sesame-4711"}, {"A": "1"})


def found() -> Proposals:
    changes = (SetFlag("api-key", "other-4712"), UnsetFlag("ep-size"))
    first = Proposal(
        say="Do it\x1b[31m",
        kind=Kind.DROP,
        basis=Basis.REPORTED,
        changes=changes,
        config=Config.of({"model-path": "/m", "api-key": "other-4712"}, {"A": "1"}),
        disposition=Disposition.LOSSY,
        cost="speed",
        given_up=("ep-size",),
        weight=1.0,
        size=2,
        span=Span(flag="ep-size", start=4, end=1, step=-1),
        unsure=("gpu = B300",),
    )
    manual = Proposal(say="Upgrade", kind=Kind.MANUAL, basis=Basis.INFERRED)
    probe = Proposal(
        say="Look closer", kind=Kind.ENV, basis=Basis.STATED, changes=(SetEnv("B", "1"),),
        config=BASE, probe=True,
    )  # fmt: skip
    return Proposals(
        cause="weight-oom",
        signature="weight-oom",
        title="No room",
        phase="weight-load",
        config=BASE,
        options=(first, manual, probe),
        ruled_out=(RuledOut(say="Drop it", changes=(UnsetFlag("x"),), fact="it is not set"),),
    )


SHOWN = (Shown(text="run\n", diff="-a\n+b"), Shown(), Shown(text="run with B\n"))


def test_the_text_says_what_why_at_what_price_and_what_is_ruled_out() -> None:
    text = proposals_text(found(), SHOWN, budget=3)
    assert text.startswith("weight-oom in weight-load: No room")
    assert "\x1b" not in text
    assert "(reports confirm it; lossy; costs: speed)" in text
    assert "if: gpu = B300 (not known here)" in text
    assert "search: --ep-size from 4 to 1 in steps of 1, 4 values" in text
    assert "3. look: Look closer" in text
    assert "ruled out\n  Drop it: it is not set" in text
    assert "plan: launch 1, at most 3 launches." in text
    assert text.endswith("with 1., as a diff:\n-a\n+b\n\nto paste:\nrun")
    assert "47" not in text.replace("REDACTED", "")


def test_the_document_fits_its_schema_and_holds_no_secret() -> None:
    document = proposals_document("x.log", found(), SHOWN, given=True, budget=3)
    assert list(Draft202012Validator(SCHEMA).iter_errors(document)) == []
    assert "4711" not in json.dumps(document)
    assert "4712" not in json.dumps(document)
    assert document["plan"] == {"budget": 3, "order": [1], "say": document["plan"]["say"]}  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (SetFlag("ep-size", "4"), "change ep-size 8 -> 4"),
        (SetFlag("enable-x", True), "add enable-x"),
        (UnsetFlag("ep-size"), "drop ep-size 8"),
        (SetEnv("A", "2"), "change A=1 -> 2"),
        (SetEnv("B", "2"), "add B=2"),
        (UnsetEnv("A"), "drop A=1"),
        (SetFlag("api-key", "x-4712"), "change api-key REDACTED -> REDACTED"),
    ],
)
def test_a_change_is_said_as_people_say_it(change: Change, said: str) -> None:
    assert change_words(change, BASE) == said

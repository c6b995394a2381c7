"""What a resolution says is what a launch does, against real SGLang; and rules that were checked.

`make e2e` takes a fixed sample; `make e2e-full` takes every set and writes bench/RESOLUTION.md.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from agreement import (
    BASE_ENV,
    PROGRAM,
    ROOT,
    State,
    compare,
    full_table,
    is_override,
    load,
    sample,
    say,
    told,
    without_a_launch,
)
from traces import Descendants

from triage.core.config import Config
from triage.knowledge.rules import load_rules
from triage.session.resolve import Engine

CONFIG_PAIRS = {
    frozenset({"page-size", "chunked-prefill-size"}),
    frozenset({"enable-priority-scheduling", "schedule-policy"}),
    frozenset({"enable-torch-compile", "disable-cuda-graph-padding"}),
    frozenset({"enable-dynamic-batch-tokenizer", "enable-tokenizer-batch-encode"}),
    frozenset({"min-free-slots-delay", "pp-size"}),
}


@pytest.mark.e2e
def test_twelve_flag_sets_end_as_their_resolution_says(tmp_path: Path) -> None:
    rows = sample()
    assert len(rows) == 12
    with Descendants() as descendants:
        pairs = compare(rows, tmp_path, say=lambda pair: say(told(pair)))
    assert [(p.row, p.differs) for p in pairs if not p.agree] == []
    assert len(pairs) == 12
    assert {p.launched.verdict for p in pairs} == {"accepted", "rejected"}
    assert any(is_override(p) for p in pairs)
    assert descendants.left() == []


@pytest.mark.e2e
def test_the_five_pairs_of_the_configuration_are_found_without_a_launch(tmp_path: Path) -> None:
    with Descendants() as descendants:
        document, seconds = without_a_launch(tmp_path / "s")
    assert {frozenset(one["items"]) for one in document["sets"]} == CONFIG_PAIRS
    assert all(one["minimal"] for one in document["sets"])
    assert document["spent"]["launches"] == 0
    assert document["spent"]["saved_launches"] == 5
    assert list((tmp_path / "s").glob("trials/*/exit.json")) == [], "nothing was launched"
    assert seconds < 300
    assert descendants.left() == []


@pytest.mark.e2e
def test_each_rule_of_the_knowledge_base_holds_for_the_installed_engine() -> None:
    """Its example is refused with its words, its counterexample is accepted."""
    base = Config.of(load()["base"])
    wrong = []
    with Engine(PROGRAM, BASE_ENV, ROOT) as engine:
        for rule in load_rules("0.5.23"):
            no = engine.resolve(Config.of(base.flag_values() | rule.refused.flag_values()))
            yes = engine.resolve(Config.of(base.flag_values() | rule.accepted.flag_values()))
            said = (no.verdict, no.exception, rule.message in no.message, yes.verdict)
            if said != ("rejected", rule.exception, True, "accepted"):
                wrong.append((rule.id, said, no.message, no.reason))
    assert wrong == []


@pytest.mark.e2e_full
def test_every_flag_set_ends_as_its_resolution_says(tmp_path: Path) -> None:
    """Launches are kept in AGREEMENT_ROWS, if it is set, and made once."""
    rows = os.environ.get("AGREEMENT_ROWS")
    state = State(Path(rows) if rows else None)
    assert full_table(state, tmp_path)
    sets = load()["sets"]
    seen = [state.known[key] for key in state.known if key.startswith("{")]
    assert len(sets) >= 80
    assert sum(len(row) == 2 for row in sets) >= 20
    assert sum(one["verdict"] == "rejected" for one in seen) >= 30
    assert state.known["agreed"] == [len(sets), len(sets)]
    assert state.known["overridden"] >= 10
    assert set(state.known["halves"]) == {"starts"}, "each half starts alone"
    assert state.known["saved"]["launched_s"] >= 10 * state.known["saved"]["asked_s"]

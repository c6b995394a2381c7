"""A comparison on a terminal of 80 columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.core.config import Config
from triage.core.diff.difference import (
    DecisionChange,
    Diff,
    EnvChange,
    FieldChange,
    PhaseChange,
    SizeChange,
    Suppressed,
    TypedChange,
    VersionChange,
)
from triage.core.diff.side import Side
from triage.render.diff_document import diff_document
from triage.render.diff_text import WIDTH, diff_text

GOOD = Side(
    source="s:1", kind="trial", trial=1, outcome="healthy", phase="serving", engine="sglang",
    engine_version="0.5.23", typed=Config(), resolved={}, seconds={"weight-load": 0.0},
)  # fmt: skip
BAD = replace(
    GOOD, source="s:2", trial=2, outcome="failed", phase="weight-load", cause="gpu-occupied"
)
EP = FieldChange(
    field="ep_size", flag="ep-size", good=1, bad=8, kind="moved", by=("moe-a2a-backend",),
    where="arg_groups/overrides.py:1619",
)  # fmt: skip
DIFF = Diff(
    good=GOOD,
    bad=BAD,
    user=(TypedChange(key="moe-a2a-backend", good=None, bad="deepep"),),
    resolved=(
        FieldChange(field="moe_a2a_backend", flag="moe-a2a-backend", good="none", bad="deepep",
                    kind="typed"),
        EP,
        FieldChange(field="json_model_override_args", flag="json-model-override-args", good="{}",
                    bad='{"num_hidden_layers": 4, "a": "' + "b" * 100 + '"}', kind="moved"),
    ),
    env=(EnvChange(name="NCCL_NVLS_ENABLE", good="0", bad="1", told="rule",
                   where="entrypoints/engine.py:1913"),),
    versions=(VersionChange(name="nccl", good="2.27.3", bad="2.28.9"),),
    memory=(SizeChange(name="KV pool", unit="GB", good=(3.0, 3.0), bad=(1.5, 1.25)),),
    timeline=(PhaseChange(phase="serving", kind="good-only", good=None, bad=None),
              PhaseChange(phase="weight-load", kind="slower", good=70.0, bad=300.0)),
    decisions=(DecisionChange(text="Use trtllm_mla as attention backend " * 6, side="bad", line=7),),
    suppressed=(Suppressed(part="resolved", name="random_seed", good=1, bad=2, reason="drawn"),),
)  # fmt: skip


def test_the_whole_is_aligned_and_in_the_order_of_the_question() -> None:
    lines = diff_text(DIFF).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert lines[:2] == [
        "good    s:1  (sglang 0.5.23, healthy)",
        "bad     s:2  (sglang 0.5.23, failed in weight-load: gpu-occupied)",
    ]
    heads = [line for line in lines[2:] if line and not line.startswith(" ")]
    assert heads == [
        "set differently", "moved with moe-a2a-backend", "moved, not known with which of these",
        "environment", "versions", "memory and sizes", "timeline",
        "decisions  (line of the log)", "hidden  1 difference that says nothing; --all shows them and why",
    ]  # fmt: skip
    arrows = {line.index(" -> ") for line in lines if " -> " in line}
    assert len(arrows) == 1
    row = next(line for line in lines if line.startswith("  ep-size"))
    assert row.split() == ["ep-size", "1", "->", "8", "overrides.py:1619"]
    assert "  bad ended in weight-load; good went on to serving" in lines


def test_long_values_stand_below_their_name_and_are_whole() -> None:
    text = diff_text(DIFF)
    assert "b" * 30 in text
    assert '    good  {}\n    bad   {"num_hidden_layers": 4,' in text


def test_everything_shows_what_is_hidden_with_its_reason() -> None:
    text = diff_text(DIFF, everything=True)
    assert "random_seed" in text
    assert "    drawn" in text
    assert "random_seed" not in diff_text(DIFF)


def test_equal_launches_say_so_and_a_log_says_what_it_cannot_tell() -> None:
    same = Diff(good=GOOD, bad=replace(GOOD, source="x"), notes=(("user", "a log does not tell"),))
    assert "\nnothing differs\n" in diff_text(same)
    assert "open    flags: a log does not tell" in diff_text(same)
    assert "same    resolved arguments, environment" in diff_text(same)


@pytest.mark.parametrize("kind", ["open", "moved"])
@given(
    field=st.text("abc_\x1b\n\u202e", min_size=1, max_size=120),
    good=st.text(max_size=300) | st.integers() | st.none() | st.floats(),
    bad=st.lists(st.text(max_size=9), max_size=80).map(tuple) | st.booleans(),
)
def test_any_value_keeps_to_the_screen_and_cannot_command_it(
    kind: Any, field: str, good: object, bad: object
) -> None:
    change = FieldChange(field=field, flag="", good=good, bad=bad, kind=kind, where="a/b.py:1")
    found = Diff(good=replace(GOOD, typed=None), bad=BAD, resolved=(change,))
    text = diff_text(found)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert len(text.splitlines()) < 40
    assert diff_document(found)["equal"] is False

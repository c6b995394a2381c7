"""A resolution as a value: which flags were not taken as given, and what is the same to the engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triage.core.config import Config, Value
from triage.core.resolution import Override, Resolution, effective_key, fields_of, overrides
from triage.knowledge import load_flag_table

TABLE = load_flag_table()
PLAIN = Resolution(
    verdict="accepted", resolved={"page_size": 64, "random_seed": 7, "port": 30001, "tp_size": 8}
)


@pytest.mark.parametrize(
    ("flag", "given", "became", "same"),
    [
        ("page-size", "64", 64, True),
        ("page-size", "1", 64, False),
        ("mem-fraction-static", "0.90", 0.9, True),
        ("max-total-tokens", "64", 64, True),
        ("schedule-policy", "lpm", "lpm", True),
        ("schedule-policy", "lpm", "fcfs", False),
        ("enable-mixed-chunk", True, True, True),
        ("enable-mixed-chunk", True, False, False),
        ("cuda-graph-bs-decode", ("1", "8"), [1, 8], True),
        ("cuda-graph-bs-decode", ("1", "8"), [1], False),
        ("json-model-override-args", '{"a": 1}', '{"a": 1}', True),
        ("speculative-algorithm", "NEXTN", "EAGLE", False),
    ],
)
def test_a_flag_is_overridden_where_its_value_is_another_one(
    flag: str, given: Value, became: object, same: bool
) -> None:
    field = TABLE.specs[flag].field
    resolution = Resolution(verdict="accepted", resolved={field: became})
    found = overrides(Config.of({flag: given}), resolution, TABLE)
    assert found == (() if same else (Override(flag, given, became),))


def test_where_a_launch_listens_and_what_is_drawn_is_no_difference() -> None:
    other = replace(PLAIN, resolved={**PLAIN.resolved, "port": 1, "random_seed": 8})
    assert effective_key(PLAIN, {"TMPDIR": "/a"}) == effective_key(
        replace(PLAIN, resolved={**PLAIN.resolved, "port": 1}), {"TMPDIR": "/b"}
    )
    assert fields_of(PLAIN) == fields_of(other) == {"page_size": 64, "tp_size": 8}


def test_equal_configurations_are_those_with_equal_fields_and_variables() -> None:
    key = effective_key(PLAIN, {})
    assert key
    assert key != effective_key(replace(PLAIN, resolved={**PLAIN.resolved, "tp_size": 4}), {})
    assert key != effective_key(PLAIN, {"NCCL_DEBUG": "INFO"})
    assert key != effective_key(replace(PLAIN, env={"NCCL_NVLS_ENABLE": "1"}), {})


@pytest.mark.parametrize(
    "resolution",
    [
        replace(PLAIN, verdict="rejected"),
        replace(PLAIN, verdict="unknown"),
        replace(PLAIN, basis="knowledge"),
    ],
)
def test_only_what_the_engine_accepts_can_be_the_same(resolution: Resolution) -> None:
    assert effective_key(resolution, {}) == ""

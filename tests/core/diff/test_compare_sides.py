"""Two launches compared: what is shown, what is left out, whose doing it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from triage.core.config import Config
from triage.core.diff.compare import compare
from triage.core.diff.difference import Diff
from triage.core.diff.side import Decision, Reading, Side
from triage.core.flags import table_of
from triage.knowledge.diff_rules import FILE, load_diff_rules
from triage.render.diff_document import diff_document
from triage.render.diff_text import diff_text

FLAGS = Path(__file__).parents[3] / "triage/knowledge/flags/sglang-0.5.23.yaml"
TABLE = table_of(yaml.load(FLAGS.read_text(), yaml.CSafeLoader))
RULES = load_diff_rules()
VALUES: dict[str, object] = {
    "model_path": "/m", "tokenizer_path": "/m", "tp_size": 8, "ep_size": 1, "attn_dp_size": 1,
    "chunked_prefill_size": 8192, "schedule_conservativeness": 1.0, "enable_dp_attention": False,
    "moe_a2a_backend": "none", "moe_runner_backend": "auto", "page_size": 1, "random_seed": 1,
    "port": 30000, "enable_nccl_nvls": False, "enable_symm_mem": False, "dcp_size": 1,
    "disable_shared_experts_fusion": False, "speculative_algorithm": None,
    "speculative_num_steps": None, "max_running_requests": None, "grammar_backend": "xgrammar",
    "cuda_graph_config.decode.backend": "full", "cuda_graph_config.decode.bs": (1, 2),
    "cuda_graph_config.decode.max_bs": 2,
}  # fmt: skip
GOOD = Side(source="good", kind="log", outcome="healthy", phase="serving", resolved=VALUES)


def against(good: Side = GOOD, /, **values: object) -> Diff:
    return compare(good, replace(good, source="bad", resolved={**VALUES, **values}), RULES, TABLE)


def kinds(diff: Diff) -> dict[str, Any]:
    return {c.field: c.by if c.kind == "moved" else c.kind for c in diff.resolved}


def test_equal_launches_do_not_differ_and_neither_does_what_says_nothing() -> None:
    assert against().equal
    found = against(random_seed=7, port=31000)
    assert found.equal
    assert {s.name for s in found.suppressed} == {"random_seed", "port"}
    assert all(s.reason for s in found.suppressed)


def test_one_flag_is_shown_alone() -> None:
    assert kinds(against(page_size=64)) == {"page_size": "open"}


def test_what_a_flag_moves_stands_under_it_with_its_place() -> None:
    found = against(moe_a2a_backend="deepep", ep_size=8)
    assert kinds(found) == {"moe_a2a_backend": "open", "ep_size": ("moe-a2a-backend",)}
    assert found.resolved[-1].where.startswith("arg_groups/overrides.py:")


def test_a_planted_moved_field_appears() -> None:
    assert kinds(against(page_size=64, grammar_backend="none")) == {
        "page_size": "open", "grammar_backend": "open",
    }  # fmt: skip
    typed = replace(GOOD, typed=Config.of({"model-path": "/m"}))
    bad = replace(
        typed, source="bad", typed=Config.of({"model-path": "/m", "page-size": "64"}),
        resolved={**VALUES, "page_size": 64, "grammar_backend": "none"},
    )  # fmt: skip
    found = compare(typed, bad, RULES, TABLE)
    # Nothing else was set, so it moved with it, although no rule says so.
    assert kinds(found) == {"page_size": "typed", "grammar_backend": ("page-size",)}
    assert found.resolved[-1].where == ""
    assert [(c.key, c.good, c.bad) for c in found.user] == [("page-size", None, "64")]


def test_an_older_name_and_the_parameters_of_an_algorithm_are_no_second_change() -> None:
    found = against(attn_dp_size=2, enable_dp_attention=True, chunked_prefill_size=4096)
    assert kinds(found) == {"attn_dp_size": "open", "chunked_prefill_size": ("attn-dp-size",)}
    found = against(speculative_algorithm="NGRAM", speculative_num_steps=1, max_running_requests=48)
    assert {c.field: c.also for c in found.resolved} == {
        "speculative_algorithm": False,
        "speculative_num_steps": True,
        "max_running_requests": False,
    }


def test_a_chain_of_moves_leads_back_to_the_flag() -> None:
    # attn_dp_size moves chunked_prefill_size, and that moves the memory fraction.
    good = {**VALUES, "mem_fraction_static": 0.88}
    side = replace(GOOD, resolved=good)
    bad = {**good, "attn_dp_size": 2, "chunked_prefill_size": 4096, "mem_fraction_static": 0.9}
    found = compare(side, replace(side, resolved=bad), RULES, TABLE)
    assert kinds(found)["mem_fraction_static"] == ("attn-dp-size",)


def test_graph_sizes_say_nothing_where_no_graph_is_captured() -> None:
    off: dict[str, object] = {"cuda_graph_config.decode.backend": "disabled"}
    side = replace(GOOD, resolved={**VALUES, **off})
    bad = {**VALUES, **off, "cuda_graph_config.decode.max_bs": 512}
    assert compare(side, replace(side, resolved=bad), RULES, TABLE).equal
    found = against(**{"cuda_graph_config.decode.max_bs": 512})
    assert kinds(found) == {"cuda_graph_config.decode.max_bs": "open"}


def test_true_is_not_one_and_an_int_may_become_a_float() -> None:
    assert not against(page_size=True).equal
    assert against(schedule_conservativeness=1).equal


def test_the_variables_that_the_engine_sets_silently_are_named_with_their_place() -> None:
    found = against(enable_nccl_nvls=True)
    assert [(c.name, c.good, c.bad, c.told, c.by) for c in found.env] == [
        ("NCCL_NVLS_ENABLE", "0", "1", "rule", ("enable_nccl_nvls",))
    ]
    assert found.env[0].where.startswith("entrypoints/engine.py:")
    names = {c.name: (c.good, c.bad) for c in against(enable_symm_mem=True).env}
    assert names == {
        "NCCL_NVLS_ENABLE": ("0", "1"),
        "NCCL_CUMEM_ENABLE": ("0", "1"),
        "SGLANG_SYMM_MEM_PREALLOC_GB_SIZE": (None, "4"),
    }


def test_fields_of_another_release_are_left_out_together() -> None:
    extra = {f"new_{n}": n for n in range(30)}
    found = against(page_size=64, **extra)
    assert kinds(found) == {"page_size": "open"}
    assert sum("releases" in s.reason for s in found.suppressed) == 30
    few = against(**{f"fork_{n}": n for n in range(3)})
    assert len(few.resolved) == 3


def test_memory_and_times_differ_only_beyond_what_readings_do() -> None:
    def side(tokens: float, weights: float, seconds: float) -> Side:
        return replace(
            GOOD,
            memory={
                "KV pool tokens": Reading(unit="", ranks={"TP0": tokens, "TP1": tokens}),
                "weights": Reading(unit="GB", ranks={"TP0": weights}),
                "free after weights": Reading(unit="GB", ranks={"TP0": weights}),
            },
            seconds={"weight-load": 10.0, "kv-pool-init": 10.0 + seconds, "serving": 700.0},
        )

    assert compare(side(64, 20.0, 70), side(64, 20.4, 120), RULES, TABLE).equal
    found = compare(side(64, 20.0, 70), side(32, 40.0, 300), RULES, TABLE)
    assert [(c.name, c.good, c.bad) for c in found.memory] == [
        ("KV pool tokens", (64, 64), (32, 32)), ("weights", (20.0, 20.0), (40.0, 40.0)),
    ]  # fmt: skip
    assert [(c.phase, c.kind, c.good, c.bad) for c in found.timeline] == [
        ("weight-load", "slower", 70, 300)
    ]


def test_what_a_launch_ended_too_early_to_say_is_no_decision() -> None:
    def said(*texts: tuple[str, str]) -> tuple[Decision, ...]:
        return tuple(Decision(text=t, line=n, phase=p) for n, (t, p) in enumerate(texts, 1))

    good = replace(
        GOOD,
        seconds={"config-load": 0.0, "weight-load": 1.0, "kv-pool-init": 2.0, "serving": 3.0},
        decisions=said(
            ("Use fa3 backend by default.", "config-load"),
            ("Using KV cache dtype: torch.bfloat16", "kv-pool-init"),
        ),
    )
    bad = replace(
        good,
        outcome="failed",
        phase="weight-load",
        seconds={"config-load": 0.0, "weight-load": 1.0},
        decisions=said(("Use triton backend by default.", "config-load")),
    )
    found = compare(good, bad, RULES, TABLE)
    assert [(c.side, c.text) for c in found.decisions] == [
        ("good", "Use fa3 backend by default."), ("bad", "Use triton backend by default."),
    ]  # fmt: skip
    assert [(c.phase, c.kind) for c in found.timeline] == [
        ("kv-pool-init", "good-only"), ("serving", "good-only"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Setting cache to 3.20 GB, enabled", "Setting cache to 4.00 GB, enabled"),
        ("init: rank=0 uses core 1, pid=77", "init: rank=1 uses core 1, pid=78"),
        ("use /opt/a/lib/python3.11/site-packages/x.py", "use /srv/lib/python3.11/site-packages/x.py"),
        ("Using 10.0.0.1:31000 by default", "Using 10.0.0.2:31001 by default"),
    ],
)  # fmt: skip
def test_measured_numbers_and_places_do_not_make_another_decision(one: str, other: str) -> None:
    sides = [
        replace(GOOD, decisions=(Decision(text=text, line=1, phase="config-load"),))
        for text in (one, other)
    ]
    assert compare(sides[0], sides[1], RULES, TABLE).equal


def test_what_cannot_be_compared_is_said() -> None:
    found = compare(GOOD, replace(GOOD, resolved=None, unresolved="cut off"), RULES, TABLE)
    assert ("resolved", "bad: cut off") in found.notes
    assert found.resolved == ()


def test_secrets_are_hidden_by_name_and_two_of_them_stay_two() -> None:
    sides = [
        replace(
            GOOD,
            kind="trial",
            typed=Config.of({"api-key": f"open{n}"}, {"MY_API_KEY": f"sesame{n}"}),
            resolved={**VALUES, "api_key": f"open{n}", "ssl_keyfile_password": "x" * n or None},
            env={"MY_SECRET": f"sesame{n}"},
        )
        for n in (0, 1)
    ]
    found = compare(sides[0], sides[1], RULES, TABLE)
    assert [(c.key, c.good, c.bad) for c in found.user] == [
        ("api-key", "REDACTED", "REDACTED-2"), ("env:MY_API_KEY", "REDACTED", "REDACTED-2"),
    ]  # fmt: skip
    assert {c.field: (c.good, c.bad) for c in found.resolved} == {
        "api_key": ("REDACTED", "REDACTED-2"), "ssl_keyfile_password": (None, "REDACTED"),
    }  # fmt: skip
    assert [(c.good, c.bad) for c in found.env] == [("REDACTED", "REDACTED-2")]
    told = json.dumps(diff_document(found)) + diff_text(found, everything=True)
    assert "sesame" not in told
    assert "open0" not in told


def test_versions_are_compared_where_both_tell_them() -> None:
    a = replace(GOOD, versions={"nccl": "2.27", "torch": "2.9"}, engine_version="0.5.22")
    b = replace(GOOD, versions={"nccl": "2.28"}, engine_version="0.5.23")
    found = compare(a, b, RULES, TABLE)
    assert [(c.name, c.good, c.bad) for c in found.versions] == [
        ("nccl", "2.27", "2.28"), ("sglang", "0.5.22", "0.5.23"),
    ]  # fmt: skip


def test_every_suppression_has_a_reason_and_every_leader_is_a_field() -> None:
    raw = yaml.safe_load(FILE.read_text())
    for part in ("suppress", "masked", "follows"):
        assert all(len(row["reason"].split()) > 1 or part == "masked" for row in raw[part])
        assert all(row["reason"] for row in raw[part])
    fields = {spec.field for spec in TABLE.specs.values()}
    older = {"cuda_graph_max_bs"}
    assert {leader for row in raw["follows"] for leader in row["leaders"]} - fields == older
    assert {name for row in raw["env"] for name in row["fields"]} <= fields

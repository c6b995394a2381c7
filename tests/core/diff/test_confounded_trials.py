"""Trials of which the engine changed more than was meant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from triage.core.config import Config, SetEnv, SetFlag, UnsetFlag
from triage.core.diff.confounded import moved_besides
from triage.core.flags import table_of
from triage.core.trials import Entry, Item, Moved, Problem, Seen
from triage.core.wording import item_key, moved_text, pin_text
from triage.knowledge.diff_rules import load_diff_rules

FLAGS = Path(__file__).parents[3] / "triage/knowledge/flags/sglang-0.5.23.yaml"
TABLE = table_of(yaml.load(FLAGS.read_text(), yaml.CSafeLoader))
RULES = load_diff_rules()
A2A, NVLS, PAGE = "moe-a2a-backend", "enable-nccl-nvls", "page-size"
PROBLEM = Problem(
    name="t",
    baseline=Config.of({"model-path": "/m", "tp-size": "8", "disable-radix-cache": True}),
    items=tuple(
        Item(key=item_key(change), change=change)
        for change in (
            SetFlag(A2A, "deepep"), SetFlag(NVLS, True), SetFlag(PAGE, "64"),
            SetFlag("attn-dp-size", "2"), SetFlag("speculative-algorithm", "NGRAM"),
            SetFlag("enable-symm-mem", True), SetEnv("NCCL_NVLS_ENABLE", "0"),
            SetEnv("NCCL_X", "1"), UnsetFlag("disable-radix-cache"),
        )
    ),
)  # fmt: skip
BASE = {"model-path": "/m", "tp-size": "8", "disable-radix-cache": "True"}


def entry(number: int, items: set[str], effective: Mapping[str, str]) -> Entry:
    return Entry(
        number=number, items=frozenset(items), seen=Seen.STARTS, effective={**BASE, **effective}
    )


BASELINE = entry(1, set(), {})


def moved(
    items: set[str], effective: Mapping[str, str], *journal: Entry, bare: bool = False
) -> tuple[Moved, ...]:
    mine = dict(effective) if bare else {**BASE, **effective}
    return moved_besides(
        frozenset(items), PROBLEM, mine, journal or (BASELINE,), rules=RULES, table=TABLE
    )


def test_a_trial_that_changes_what_it_set_is_not_confounded() -> None:
    assert moved({NVLS}, {NVLS: "True"}) == ()
    assert moved({PAGE}, {PAGE: "64"}) == ()
    assert moved({"env:NCCL_X"}, {}) == ()
    off = {k: v for k, v in BASE.items() if k != "disable-radix-cache"}
    assert moved({"without:disable-radix-cache"}, off, bare=True) == ()


def test_a_field_that_moved_besides_is_named_with_its_values_and_item() -> None:
    found = moved({A2A}, {A2A: "deepep", "ep-size": "8"})
    assert found == (Moved(name="ep-size", before=None, after="8", against=1, by=(A2A,)),)
    assert moved_text(found[0]) == "ep-size its default -> 8 with moe-a2a-backend"
    assert pin_text(found) == "pin: [{flag: ep-size, value: 8}]"


def test_of_several_items_the_one_that_moved_it_before_is_named() -> None:
    alone = entry(2, {A2A}, {A2A: "deepep", "ep-size": "8"})
    journal = (BASELINE, alone)
    found = moved({A2A, NVLS}, {A2A: "deepep", NVLS: "True", "ep-size": "8"}, *journal)
    # Beside its nearest trial only nvls differs; beside the baseline ep-size moved as well.
    assert [(m.name, m.against, m.by) for m in found] == [("ep-size", 1, (A2A,))]


def test_without_an_earlier_trial_a_rule_of_the_engine_names_it_else_all_are_named() -> None:
    both = {A2A: "deepep", NVLS: "True"}
    assert moved({A2A, NVLS}, {**both, "ep-size": "8"})[0].by == (A2A,)
    assert moved({A2A, NVLS}, {**both, "grammar-backend": "none"})[0].by == (NVLS, A2A)


def test_the_nearest_trial_tells_what_an_added_item_moved_back() -> None:
    one = entry(2, {A2A}, {A2A: "deepep", "ep-size": "8"})
    found = moved({A2A, NVLS}, {A2A: "deepep", NVLS: "True"}, BASELINE, one)
    assert found == (Moved(name="ep-size", before="8", after=None, against=2, by=(NVLS,)),)


def test_parameters_and_other_names_of_the_change_do_not_confound() -> None:
    values = {
        "speculative-algorithm": "NGRAM", "speculative-num-steps": "1",
        "speculative-eagle-topk": "10", "max-running-requests": "48",
    }  # fmt: skip
    assert [m.name for m in moved({"speculative-algorithm"}, values)] == ["max-running-requests"]
    values = {"attn-dp-size": "2", "enable-dp-attention": "True", "chunked-prefill-size": "2048"}
    assert [m.name for m in moved({"attn-dp-size"}, values)] == ["chunked-prefill-size"]


def test_a_value_that_the_engine_overrode_is_named() -> None:
    found = moved({PAGE}, {PAGE: "128"})
    assert found == (Moved(name=PAGE, before="64", after="128", against=0),)
    assert moved_text(found[0]) == "page-size was set to 64, and the engine made it 128"
    assert moved_text(moved({PAGE}, {})[0]).endswith("the engine left it at its default")
    assert pin_text(found) == ""


def test_a_secret_that_the_engine_prints_otherwise_is_not_told() -> None:
    item = Item(key="api-key", change=SetFlag("api-key", "open sesame"))
    problem = replace(PROBLEM, items=(item,))
    found = moved_besides(
        frozenset({"api-key"}), problem, {**BASE, "api-key": "***"}, (BASELINE,),
        rules=RULES, table=TABLE,
    )  # fmt: skip
    assert found == ()


@pytest.mark.parametrize("name", ["host", "port", "random-seed", "log-level", "served-model-name"])
def test_what_says_nothing_does_not_confound(name: str) -> None:
    assert moved({NVLS}, {NVLS: "True", name: "7"}) == ()


def test_without_a_dump_nothing_is_claimed() -> None:
    assert moved({A2A}, {}, bare=True) == ()
    empty = Entry(number=1, items=frozenset(), seen=Seen.FAILS)
    assert moved({A2A}, {A2A: "deepep", "ep-size": "8"}, empty) == ()


def test_a_variable_that_the_engine_sets_as_a_side_effect_is_named() -> None:
    symm = {"enable-symm-mem": "True"}
    found = moved({"enable-symm-mem"}, symm)
    # What the flag means by itself (NCCL_CUMEM_ENABLE) is no second change.
    assert found == (
        Moved(name="env:NCCL_NVLS_ENABLE", before="0", after="1", against=1,
              by=("enable-symm-mem",)),
    )  # fmt: skip
    assert moved_text(found[0]) == "NCCL_NVLS_ENABLE 0 -> 1 with enable-symm-mem"
    assert pin_text(found) == ""
    assert moved({"enable-symm-mem", "env:NCCL_NVLS_ENABLE"}, symm) == ()
    both = {**symm, NVLS: "True"}
    assert [m.name for m in moved({"enable-symm-mem", NVLS}, both)] == []


def test_a_launch_with_a_smaller_model_is_no_measure_for_a_full_one() -> None:
    twin = replace(entry(1, set(), {"load-format": "dummy"}), rung="twin")
    assert moved({NVLS}, {NVLS: "True"}, twin) == ()
    assert moved({NVLS}, {NVLS: "True"}, twin, replace(BASELINE, number=2)) == ()


def test_a_level_of_a_range_is_the_flag_that_was_meant() -> None:
    found = moved({"mem-fraction-static=0.8"}, {"mem-fraction-static": "0.8", "ep-size": "2"})
    assert [m.name for m in found] == ["ep-size"]

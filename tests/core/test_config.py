"""Configs, edits of configs, and words that can be pasted."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.core.config import (
    Config,
    Flag,
    SetEnv,
    SetFlag,
    UnsetEnv,
    UnsetFlag,
    apply,
    argv,
    diff,
    words,
)
from triage.core.flags import table_of

FLAGS = Path(__file__).parents[2] / "triage/knowledge/flags/sglang-0.5.23.yaml"
TABLE = table_of(yaml.load(FLAGS.read_text(), yaml.CSafeLoader))
HOSTILE = [
    "a b",
    "$(x)",
    "`x`",
    "it's",
    '"',
    "\\",
    "a\nb",
    '{"a": [1, "b c"]}',
    "",
    "*",
    "~",
    "#",
    "é",
    "-1",
    "--x",
    "a;b",
    "&",
]
TEXT = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8),
)
CONFIGS = st.builds(
    Config.of,
    st.dictionaries(
        st.sampled_from(sorted(TABLE.specs)),
        st.one_of(TEXT, st.booleans(), st.tuples(TEXT, TEXT)),
        max_size=6,
    ),
    st.dictionaries(st.sampled_from(["A", "B", "NCCL_DEBUG"]), TEXT, max_size=3),
)


@st.composite
def real_configs(draw: st.DrawFn) -> Config:
    """Configs whose values fit the style of their flag."""
    names = draw(st.lists(st.sampled_from(sorted(TABLE.specs)), unique=True, max_size=6))
    flags: dict[str, str | bool | tuple[str, ...]] = {}
    items = st.one_of(st.just("-1"), TEXT.filter(lambda t: not t.startswith("-")))
    for name in names:
        match TABLE.specs[name].style:
            case "switch":
                flags[name] = True
            case "bool-optional":
                flags[name] = draw(st.booleans())
            case "list":
                flags[name] = tuple(draw(st.lists(items, min_size=1, max_size=3)))
            case "optional-value":
                flags[name] = draw(st.one_of(st.just(True), TEXT))
            case "value":
                flags[name] = draw(TEXT)
    return Config.of(flags)


def test_flags_are_in_canonical_order_whatever_the_order_given() -> None:
    assert Config.of({"tp-size": "8", "ep-size": "4"}) == Config.of(
        {"ep-size": "4", "tp-size": "8"}
    )


def test_diff_lists_flags_before_the_environment() -> None:
    old = Config.of({"ep-size": "8", "tp-size": "8"}, {"A": "1", "B": "2"})
    new = Config.of({"tp-size": "4", "page-size": "16"}, {"A": "3", "C": "4"})
    assert diff(old, new) == (
        UnsetFlag("ep-size"),
        SetFlag("page-size", "16"),
        SetFlag("tp-size", "4"),
        SetEnv("A", "3"),
        UnsetEnv("B"),
        SetEnv("C", "4"),
    )


def test_unsetting_what_is_absent_changes_nothing() -> None:
    config = Config.of({"tp-size": "8"})
    assert apply(config, [UnsetFlag("ep-size"), UnsetEnv("A")]) == config


@given(CONFIGS, CONFIGS)
@settings(max_examples=60)
def test_applying_the_difference_gives_the_other_config(one: Config, other: Config) -> None:
    assert apply(one, diff(one, other)) == other


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        (Flag("tp-size", "8"), ("--tp-size", "8")),
        (Flag("enable-metrics", True), ("--enable-metrics",)),
        (Flag("dllm-fdfo", False), ("--no-dllm-fdfo",)),
        (Flag("random-seed", "-1"), ("--random-seed=-1",)),
        (Flag("chat-template", "--odd"), ("--chat-template=--odd",)),
        (Flag("lora-paths", ("a", "b")), ("--lora-paths", "a", "b")),
        (Flag("lora-paths", ("-a",)), ("--lora-paths=-a",)),
        (Flag("-x", "1"), ("-x", "1")),
    ],
)
def test_a_flag_is_written_as_the_engine_takes_it(flag: Flag, expected: tuple[str, ...]) -> None:
    assert words(flag) == expected


def test_negative_forms_of_the_real_table_are_the_ones_that_words_writes() -> None:
    negatives = {
        spec.name: spec.negative for spec in TABLE.specs.values() if spec.style == "bool-optional"
    }
    assert negatives == {name: (f"no-{name}",) for name in negatives}
    assert len(negatives) == 12


def test_the_model_stands_first() -> None:
    config = Config.of({"attention-backend": "fa3", "model-path": "m"})
    assert argv(config) == ("--model-path", "m", "--attention-backend", "fa3")


@given(real_configs())
@settings(max_examples=150)
def test_words_of_a_config_are_read_back_as_that_config(config: Config) -> None:
    parsed = TABLE.parse(argv(config))
    assert parsed.config == config
    assert (parsed.unknown, parsed.problems, parsed.extras) == ((), (), ())


@given(real_configs())
@settings(max_examples=60)
def test_a_pasted_line_gives_the_same_words(config: Config) -> None:
    assert tuple(shlex.split(shlex.join(argv(config)))) == argv(config)


def test_a_real_shell_gives_hostile_values_back_unchanged() -> None:
    config = Config.of(
        {"lora-paths": tuple(v for v in HOSTILE if v[:1] != "-"), "model-path": "$(id)"}
    )
    line = "printf '%s\\0' " + shlex.join(argv(config))
    printed = subprocess.run(["sh", "-c", line], capture_output=True, check=True).stdout
    assert tuple(printed.decode().split("\0")[:-1]) == argv(config)

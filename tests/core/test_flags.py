"""The flag table reads a command line as argparse does."""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path
from typing import NoReturn

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.core.config import Config, Given
from triage.core.flags import Ambiguous, FlagTable, Known, Unknown, table_of
from triage.errors import UsageError

FLAGS = Path(__file__).parents[2] / "triage/knowledge/flags/sglang-0.5.23.yaml"
DOCUMENT = yaml.load(FLAGS.read_text(), yaml.CSafeLoader)
TABLE = table_of(DOCUMENT)


class RefusedError(Exception):
    """argparse would exit with status 2."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise RefusedError(message)


def parser_of(table: FlagTable) -> Parser:
    """A real argparse parser with the options of the table."""
    parser = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    for spec in table.specs.values():
        options = [f"--{name}" for name in (spec.name, *spec.aliases)]
        match spec.style:
            case "switch":
                parser.add_argument(*options, dest=spec.name, action="store_true")
            case "bool-optional":
                parser.add_argument(*options, dest=spec.name, action=argparse.BooleanOptionalAction)
            case "list":
                parser.add_argument(*options, dest=spec.name, nargs=spec.nargs)
            case "optional-value":
                parser.add_argument(*options, dest=spec.name, nargs="?", const=True)
            case "value":
                parser.add_argument(*options, dest=spec.name)
    return parser


PARSER = parser_of(TABLE)
SPELLINGS = sorted(PARSER._option_string_actions)
VALUES = st.sampled_from(
    ["8", "a b", "", "-1", "-.5", "-1e5", "-x", "-x y", "--", "-", "{}", "a=b", "--a b"]
)


@st.composite
def command_words(draw: st.DrawFn) -> list[str]:
    words: list[str] = []
    for _ in range(draw(st.integers(0, 5))):
        option = draw(st.sampled_from(SPELLINGS))
        cut = draw(st.integers(3, len(option)))
        spelling = draw(st.sampled_from([option, option[:cut], "--fork-flag", "-z", "--=", "---x"]))
        values = draw(st.lists(VALUES, max_size=2))
        # `--x=--` is left out: argparse before 3.12.5 loses that value.
        if draw(st.booleans()) and values and values[0] != "--":
            words += [f"{spelling}={values[0]}", *values[1:]]
        else:
            words += [spelling, *values]
    return words


@given(command_words())
@settings(max_examples=400)
def test_the_parse_is_the_one_of_argparse(words: list[str]) -> None:
    parsed = TABLE.parse(words)
    bad = [p for p in parsed.problems if p.kind != "stray"]
    try:
        namespace, extras = PARSER.parse_known_args(words)
    except RefusedError:
        assert bad
        return
    assert bad == []
    expected = {k: tuple(v) if isinstance(v, list) else v for k, v in vars(namespace).items()}
    found = {k: v for k, v in parsed.config.flag_values().items() if k not in parsed.unknown}
    assert found == expected
    # Newer argparse drops `--` from the words that it gives back.
    assert [w for w in parsed.extras if w != "--"] == [w for w in extras if w != "--"]


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("--ep-size", "ep-size"),
        ("ep", "ep-size"),
        ("tp_size", "tp-size"),
        ("--tensor-parallel-size", "tp-size"),
        ("--tensor-parallel-s", "tp-size"),
        ("--tp", "tp-size"),
        ("--mem-frac", "mem-fraction-static"),
        ("--enable-flashinfer", "enable-flashinfer-allreduce-fusion"),
        ("model", "model-path"),
    ],
)
def test_a_spelling_that_the_engine_accepts_is_found(spelling: str, name: str) -> None:
    found = TABLE.lookup(spelling)
    assert isinstance(found, Known)
    assert found.spec.name == name


def test_old_names_of_two_successors_are_ambiguous() -> None:
    assert TABLE.lookup("--cuda-graph-max-bs") == Ambiguous(
        ("--cuda-graph-max-bs-decode", "--cuda-graph-max-bs-prefill")
    )
    assert isinstance(TABLE.lookup("--pp"), Ambiguous)


def test_a_slip_names_the_flag_that_was_meant() -> None:
    assert TABLE.lookup("--ep-sizes") == Unknown(("--ep-size",))
    assert TABLE.lookup("--something-of-a-fork") == Unknown()
    assert TABLE.lookup("") == Unknown()


def test_underscores_are_no_spelling_on_a_command_line() -> None:
    parsed = TABLE.parse(["--tp_size", "2"])
    assert parsed.config == Config.of({"tp_size": "2"})
    assert parsed.unknown == ("tp_size",)
    assert parsed.notes == ("--tp_size is no flag of sglang 0.5.23, which spells it --tp-size",)


def test_flags_of_a_fork_are_kept_with_a_guessed_value() -> None:
    parsed = TABLE.parse(["--ddtree-width", "4", "--ddtree", "--ddtree-shape", "2", "3", "-z=1"])
    assert parsed.config == Config.of(
        {"ddtree-width": "4", "ddtree": True, "ddtree-shape": ("2", "3"), "-z": "1"}
    )
    assert parsed.unknown == ("ddtree-width", "ddtree", "ddtree-shape", "-z")
    assert parsed.problems == ()


def test_the_last_of_a_repeated_flag_counts_and_both_places_are_given() -> None:
    parsed = TABLE.parse(["--tp", "4", "--ep-size=2", "--tensor-parallel-size", "8"])
    assert parsed.config == Config.of({"tp-size": "8", "ep-size": "2"})
    assert parsed.given == (Given("tp-size", 0, 2), Given("ep-size", 2, 3), Given("tp-size", 3, 5))
    assert "--tp-size is given more than once: the last one counts" in parsed.notes


def test_a_missing_value_is_a_problem_and_stays_missing() -> None:
    parsed = TABLE.parse(["--tp-size", "--ep-size", "8"])
    assert [(p.kind, p.text) for p in parsed.problems] == [
        ("missing-value", "--tp-size has no value")
    ]
    assert parsed.config == Config.of({"tp-size": True, "ep-size": "8"})


def test_a_value_for_a_switch_is_a_problem_and_is_kept_as_written() -> None:
    parsed = TABLE.parse(["--enable-metrics=1"])
    assert [p.kind for p in parsed.problems] == ["unwanted-value"]
    assert parsed.config == Config.of({"enable-metrics=1": True})


def test_a_word_that_belongs_to_no_flag_is_a_problem() -> None:
    parsed = TABLE.parse(["--enable-metrics", "true"])
    assert [(p.kind, p.word) for p in parsed.problems] == [("stray", "true")]
    assert parsed.extras == ("true",)


def test_a_deprecated_flag_and_a_value_that_is_no_choice_are_noted() -> None:
    parsed = TABLE.parse(["--enable-dp-attention", "--attention-backend", "fa9", "--tp-size", "x"])
    assert (
        parsed.notes[0]
        == "--enable-dp-attention is deprecated, its successor is --attn-dp-size <dp-size>"
    )
    assert parsed.notes[1].startswith("--attention-backend fa9: not a choice of sglang 0.5.23 (")
    assert parsed.notes[2] == "--tp-size x: the engine expects int"


def test_a_mapping_becomes_canonical_flags() -> None:
    assert TABLE.normal(
        {
            "tp_size": 8,
            "ep": 4,
            "enable_metrics": True,
            "enable-p2p-check": False,
            "dllm-fdfo": False,
            "no-enable-tf32-matmul": True,
            "mem-fraction-static": 0.88,
            "lora-paths": ["a", 1],
            "lora-target-modules": "all",
            "json-model-override-args": {"a": [1]},
            "model-checksum": True,
            "page-size": None,
            "fork-flag": True,
            "other-fork-flag": False,
            "fork-list": [1, 2],
        }
    ) == {
        "tp-size": "8",
        "ep-size": "4",
        "enable-metrics": True,
        "dllm-fdfo": False,
        "enable-tf32-matmul": False,
        "mem-fraction-static": "0.88",
        "lora-paths": ("a", "1"),
        "lora-target-modules": ("all",),
        "json-model-override-args": '{"a": [1]}',
        "model-checksum": True,
        "fork-flag": True,
        "fork-list": ("1", "2"),
    }


def test_a_switch_with_a_value_in_a_mapping_is_refused_in_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"^enable-metrics: a switch takes true or false, not 5$"):
        TABLE.normal({"enable-metrics": 5})


def test_the_table_has_every_flag_of_the_engine_once() -> None:
    assert len(TABLE.specs) == DOCUMENT["count"] == 531
    assert [s.name for s in TABLE.specs.values() if s.required] == ["model-path"]
    styles = [s.style for s in TABLE.specs.values()]
    assert {s: styles.count(s) for s in set(styles)} == {
        "value": 334, "switch": 161, "list": 23, "bool-optional": 12, "optional-value": 1,
    }  # fmt: skip
    assert TABLE.specs["node-rank"].default == 0
    assert TABLE.specs["fp8-gemm-backend"].field == "fp8_gemm_runner_backend"
    assert TABLE.specs["model-path"].aliases == ("model",)


def test_every_default_is_one_of_the_choices() -> None:
    odd = {
        spec.name: spec.default
        for spec in TABLE.specs.values()
        if spec.choices and spec.default is not None and spec.default not in spec.choices
    }
    assert odd == {}


def test_the_table_says_where_it_comes_from() -> None:
    first = FLAGS.read_text().splitlines()[0]
    assert re.fullmatch(
        r"# Generated by triage flags generate from sglang 0\.5\.23, \d{4}-\d\d-\d\d\. Do not edit: run it again\.",
        first,
    )


def test_a_table_with_a_wrong_row_is_refused_in_one_sentence() -> None:
    with pytest.raises(UsageError, match="a row that is none"):
        table_of({"flags": [{"nome": "x"}]})
    with pytest.raises(UsageError, match="no list `flags`"):
        table_of({})


def test_a_hundred_thousand_unknown_flags_are_read_in_seconds() -> None:
    words = [f"--x{i}" for i in range(100_000)]
    started = time.process_time()
    parsed = TABLE.parse(words)
    assert time.process_time() - started < 20  # not hours; a loaded machine doubles it
    assert len(parsed.unknown) == 100_000
    assert len(parsed.notes) == 40

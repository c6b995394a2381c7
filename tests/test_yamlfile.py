"""The reader behind recipes, landscapes, cases and causes: what it takes and what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from enum import StrEnum
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from triage.errors import UsageError
from triage.yamlfile import MAX_BYTES, load_yaml, parse_yaml, plain_yaml


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


class Item(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    flag: str
    weight: float = 1.0
    colour: Colour = Colour.RED


class Sheet(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    wanted: tuple[Item, ...] = ()
    env: dict[str, str] = {}
    value: str | int | float | bool | None = None
    by_name: dict[str, Item] | None = None


def read(text: str) -> Sheet:
    return parse_yaml(text, "recipes/x.yaml", Sheet)


def refusal(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(text)
    return caught.value.message


def test_a_sheet_is_read_with_tuples_and_enums() -> None:
    sheet = read("name: a\nwanted:\n  - {flag: ep-size, weight: 2, colour: green}\n")
    assert sheet.wanted == (Item(flag="ep-size", weight=2.0, colour=Colour.GREEN),)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("off", "off"),
        ("yes", "yes"),
        ("010", "010"),
        ("12:30", "12:30"),
        ("2026-07-01", "2026-07-01"),
        ("0.5.23", "0.5.23"),
        ("8", 8),
        ("-3", -3),
        ("0.9", 0.9),
        ("1e3", 1000.0),
        ("'8'", "8"),
        ("~", None),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        (".inf", ".inf"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
    ],
)
def test_scalars_mean_what_people_typed(text: str, value: object) -> None:
    found = read(f"name: a\nvalue: {text}\n").value
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "name: a\nwanted:\n  - flag: x\n    wieght: 2\n",
            "recipes/x.yaml:4: wanted[0].wieght: unknown key, did you mean weight?",
        ),
        (
            "name: a\nby_name:\n  first: {flag: x, zzz: 2}\n",
            "recipes/x.yaml:3: by_name.first.zzz: unknown key; known: flag, weight, colour",
        ),
        ("wanted: []\n", "recipes/x.yaml:1: the key name is missing"),
        (
            "name: a\nwanted:\n  - flag: y\n  - weight: 2\n",
            "recipes/x.yaml:4: wanted[1]: the key flag is missing",
        ),
        (
            "name: a\nwanted:\n  - {flag: x, colour: geen}\n",
            'recipes/x.yaml:3: wanted[0].colour: "geen" is not allowed, did you mean green?',
        ),
        ("name: 3\n", "recipes/x.yaml:1: name: should be a valid string, not 3"),
        (
            "name: a\nenv: {A: 1}\n",
            "recipes/x.yaml:2: env.A: should be a valid string, not 1",
        ),
        ("name: a\nname: b\n", "recipes/x.yaml:2: name: repeats the key of line 1"),
        (
            "name: a\nbase: &b {A: x}\nenv:\n  <<: *b\n",
            "recipes/x.yaml:4: env: merge keys are not supported, write the keys out",
        ),
        ("- a\n", 'recipes/x.yaml:1: should be an object, not ["a"]'),
        ("", "recipes/x.yaml: the file is empty"),
        ("name: a\n  b: c\n", "recipes/x.yaml:2: mapping values are not allowed in this context"),
        (
            "name: [a\n",
            "recipes/x.yaml:2: while parsing a flow sequence, did not find expected ',' or ']'",
        ),
        (
            "name: a\n---\nname: b\n",
            "recipes/x.yaml:2: expected a single document in the stream, but found another document",
        ),
        (
            "name: !!python/object:os.system a\n",
            "recipes/x.yaml:1: name: the tag "
            "tag:yaml.org,2002:python/object:os.system is not supported",
        ),
        ("name: !mine a\n", "recipes/x.yaml:1: name: the tag !mine is not supported"),
        ("? [a, b]\n: c\n", "recipes/x.yaml:1: a key must be plain text"),
        ("name: &a [*a]\n", "recipes/x.yaml:1: name[0]: an alias that contains itself"),
        (f"name: {'[' * 40}{']' * 40}\n", "recipes/x.yaml:1: nested deeper than 32 levels"),
        (
            "name: 1\nenv: {A: 1}\n",
            "recipes/x.yaml:1: name: should be a valid string, not 1 (and 1 more)",
        ),
    ],
)
def test_every_mistake_has_its_line_and_a_way_out(text: str, message: str) -> None:
    assert refusal(text) == message


def test_every_mistake_comes_with_a_command_that_shows_its_place(tmp_path: Path) -> None:
    hints = []
    for text in ("name: 3\n", "", "name: \x00", "a: [\n"):
        with pytest.raises(UsageError) as caught:
            parse_yaml(text, "my recipes/x.yaml", Sheet)
        hints.append(caught.value.hint)
    with pytest.raises(UsageError) as caught:
        load_yaml(tmp_path / "none.yaml", Sheet)
    head = "head 'my recipes/x.yaml'"
    assert hints == ["sed -n 1p 'my recipes/x.yaml'", head, head, "sed -n 2p 'my recipes/x.yaml'"]
    assert caught.value.hint == f"ls {tmp_path}"


def test_an_alias_bomb_is_refused_quickly() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert "more than 200000 values once aliases are followed" in refusal("\n".join(levels))


def test_very_deep_nesting_does_not_overflow_the_stack() -> None:
    assert "maximum nesting depth" in refusal("[" * 100_000)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_yaml(tmp_path / "none.yaml", Sheet)
    assert caught.value.message == f"{tmp_path}/none.yaml: no such file"


def test_a_directory_and_a_binary_file_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be read: is a directory$"):
        load_yaml(tmp_path, Sheet)
    binary = tmp_path / "b.yaml"
    binary.write_bytes(b"name: \xff\x00")
    with pytest.raises(UsageError, match=r"not UTF-8 text \(byte 6\)$"):
        load_yaml(binary, Sheet)
    binary.write_bytes(b"name: \x00")
    with pytest.raises(UsageError, match=r"b\.yaml.*control characters are not allowed"):
        load_yaml(binary, Sheet)


def test_a_file_above_the_limit_is_not_parsed(tmp_path: Path) -> None:
    large = tmp_path / "l.yaml"
    large.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(UsageError, match="larger than 4 MiB"):
        load_yaml(large, Sheet)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab:-[]{}&*!?|>'\"#%@, \n\t<0~", max_size=40))
def test_no_text_gives_anything_but_a_sheet_or_a_usage_error(text: str) -> None:
    said = "recipes/x.yaml"
    try:
        read(text)
    except UsageError as error:
        said = error.message
    assert said.startswith("recipes/x.yaml")
    assert "\n" not in said


def test_importing_the_reader_imports_neither_yaml_nor_pydantic() -> None:
    code = "import sys, triage.yamlfile; print(sorted({'yaml', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match=r"pipe\.yaml: no regular file"):
        plain_yaml(pipe)

"""A pattern made of a line matches it, and lines that differ in what varies."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.core.log.pattern import name_of, pattern_of
from triage.knowledge.check import slowest_s
from triage.knowledge.shapes import pattern_faults


@pytest.mark.parametrize(
    ("line", "other"),
    [
        (
            "RuntimeError: got 129 experts, compiled for 128",
            "RuntimeError: got 65 experts, compiled for 64",
        ),
        ("OSError: no file /models/a/b.bin here", "OSError: no file /srv/x/y.safetensors here"),
        ("ValueError: key 'a b/c' is bad", "ValueError: key 'd-e 7' is bad"),
        ("refused by 10.0.0.1:500 for good", "refused by 192.168.1.9:31000 for good"),
        ("Tried to allocate 2.50 GiB. Out of it", "Tried to allocate 300 MiB. Out of it"),
        ("at 0x7ffd3a in rank 3 it broke", "at 0x1b in rank 12 it broke"),
    ],
)
def test_what_varies_is_left_open(line: str, other: str) -> None:
    pattern = re.compile(pattern_of(line))
    assert pattern.search(line)
    assert pattern.search(other)


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("AttributeError: 'NoneType' object has no attribute 'shape'",
         "AttributeError: 'NoneType' object has no attribute 'copy'"),
        ("RuntimeError: fa3 needs sm_90a", "RuntimeError: fa3 needs sm_80"),
        ("RuntimeError: a+b (c) failed", "RuntimeError: aab c failed"),
    ],
)  # fmt: skip
def test_what_says_the_reason_stays(line: str, other: str) -> None:
    pattern = re.compile(pattern_of(line))
    assert pattern.search(line)
    assert not pattern.search(other)


@pytest.mark.parametrize("line", ["", "7", "'a b'", "x 3", "/a/b/c"])
def test_a_line_that_says_too_little_gives_no_pattern(line: str) -> None:
    assert pattern_of(line) == ""


PIECES = st.sampled_from(
    ["RuntimeError: ", "12 GiB", "0x7f", "'a b'", "'name'", "/a/b", " ", "(", "[", "\\", "10.0.0.1", "é",
     "REDACTED", "host-2", "x" * 90, "/y" * 130, '"', "`", "TP3", "deadbeef01", "-1e5", ".", "word"]
)  # fmt: skip
LINES = st.one_of(st.text(max_size=120), st.lists(PIECES, max_size=12).map("".join))


@given(LINES)
def test_a_pattern_matches_its_line_and_is_fit_for_use(line: str) -> None:
    pattern = pattern_of(line)
    if pattern:
        assert re.search(pattern, line.split("\n", 1)[0].strip())
        assert list(pattern_faults(pattern)) == []


def test_a_pattern_is_quick_on_hostile_lines() -> None:
    line = "RuntimeError: 1 2 3 /a/b '5 6' 0x7f 9.5 GiB of 12.25 GiB at 10.0.0.1:5 `x y` end"
    assert slowest_s(re.compile(pattern_of(line)), [line]) < 0.005


def test_a_name_says_what_the_line_says_and_is_not_taken() -> None:
    line = "RuntimeError: Chat template /m/x.jinja is not a built-in name"
    assert name_of("RuntimeError", line) == "chat-template-built-name"
    assert (
        name_of("RuntimeError", line, ["chat-template-built-name"]) == "chat-template-built-name-2"
    )
    assert name_of("", "12") == "unnamed-failure"
    assert name_of("torch.OutOfMemoryError", "torch.OutOfMemoryError: CUDA") == "outofmemory-cuda"

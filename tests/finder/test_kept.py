"""Compiled patterns that are kept are those that `re` would make, or are made by it."""

from __future__ import annotations

import marshal
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from triage.core.regex import regex
from triage.finder import kept
from triage.finder.kept import _Patterns, kept_patterns
from triage.knowledge import load_causes

SOME: list[tuple[Any, int]] = [(p.pattern, 0) for p in load_causes().table.patterns][:400]
SOME += [("Error|error", re.IGNORECASE), (rb"what\(\): (?P<said>.*)", 0), (r"(?x) a  b # c", 0)]


@pytest.fixture(autouse=True)
def _as_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


def made(file: Path) -> Sequence[re.Pattern[Any]]:
    patterns = _Patterns(str(file))
    found = [patterns.compile(pattern, flags) for pattern, flags in SOME]
    patterns.save()
    return found


def test_what_comes_from_the_file_is_what_re_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "patterns"
    true = [re.compile(pattern, flags) for pattern, flags in SOME]
    assert made(file) == true
    monkeypatch.setattr(kept, "re", None)  # nothing is left to compile
    again = made(file)
    assert again == true  # codes, groups and flags


@pytest.mark.parametrize(
    "damage", ["cut", "foreign", "nothing", "other", "codes", "groups", "size"]
)
def test_a_file_that_is_of_no_use_is_made_anew(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "patterns"
    made(file)
    raw = file.read_bytes()
    build, known = marshal.loads(raw)
    bad = {key: marshal.dumps((0, 0, {}, b"\xff" * 8)) for key in known}
    names = {key: marshal.dumps((0, 1, {"x": 5}, b"\xff" * 8)) for key in known}
    huge = {key: marshal.dumps((0, 1 << 60, {}, b"\xff" * 8)) for key in known}
    file.write_bytes({
        "cut": raw[: len(raw) // 2], "foreign": b"PK\x03\x04", "nothing": b"",
        "other": marshal.dumps((f"{build} of another Python", bad)),
        "codes": marshal.dumps((build, bad)),
        "groups": marshal.dumps((build, names)), "size": marshal.dumps((build, huge)),
    }[damage])  # fmt: skip
    assert made(file) == [re.compile(pattern, flags) for pattern, flags in SOME]
    assert file.read_bytes() == raw


def test_nothing_is_written_where_python_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "no such folder" / "patterns")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    made(tmp_path / "patterns")
    assert list(tmp_path.iterdir()) == []


def test_few_patterns_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_MOST", 10)
    file = tmp_path / "patterns"
    made(file)
    first = marshal.loads(file.read_bytes())[1]
    made(file)
    other = marshal.loads(file.read_bytes())[1]
    assert len(first) == len(other) == 10
    assert first.keys().isdisjoint(other), "a full file gives way to what is asked for now"


def test_patterns_of_triage_are_kept_meanwhile_and_only_then(tmp_path: Path) -> None:
    file = tmp_path / "patterns"
    with kept_patterns(str(file)):
        assert regex("a(?P<b>b+)").fullmatch("abb")
    known = marshal.loads(file.read_bytes())[1]
    assert list(known) == [("a(?P<b>b+)", 0)]
    assert regex("another").search("yet another")
    assert marshal.loads(file.read_bytes())[1] == known

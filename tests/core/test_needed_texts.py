"""A text that a pattern is said to need is in everything that the pattern matches."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import triage.core
from triage.core.log.frames import _Table
from triage.core.log.literals import cover
from triage.core.log.wordings import Wordings
from triage.core.redact import _SECRETS, redact_text
from triage.core.regex import _Guarded, regex


def _guarded() -> Iterator[tuple[str, _Guarded[Any]]]:
    for module in pkgutil.walk_packages(triage.core.__path__, "triage.core."):
        for name, value in vars(importlib.import_module(module.name)).items():
            yield from ((f"{module.name}.{name}", found) for found in _inside(value))


def _inside(value: object) -> Iterator[_Guarded[Any]]:
    if isinstance(value, _Guarded):
        yield value
    elif isinstance(value, Wordings):
        for row in value.rows:
            if not isinstance(row, str):
                yield _Guarded(row[0], 0, row[1:])
    elif isinstance(value, _Table):
        yield from _inside(tuple(value._rows))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _inside(one)


GUARDED = {(where, found.pattern): found for where, found in _guarded()}


def test_there_are_many_of_them() -> None:
    assert len(GUARDED) > 150


@pytest.mark.parametrize("found", GUARDED.values(), ids=[w for w, _ in GUARDED])
def test_what_a_pattern_needs_is_in_all_that_it_matches(found: _Guarded[str]) -> None:
    covered = cover(found.pattern)
    if covered is not None and all(any(n in text for n in found.needs) for text in covered):
        return

    @settings(max_examples=40, database=None, suppress_health_check=list(HealthCheck))
    @given(st.from_regex(re.compile(found.pattern)))
    def holds(text: str) -> None:
        assert any(need in text for need in found.needs)

    holds()


@pytest.mark.parametrize(("needs", "pattern"), _SECRETS, ids=range(len(_SECRETS)))
def test_so_are_the_texts_of_a_secret_in_small_letters(
    needs: list[bytes], pattern: re.Pattern[bytes]
) -> None:
    @settings(max_examples=60, database=None, suppress_health_check=list(HealthCheck))
    @given(st.from_regex(re.compile(pattern.pattern)))
    def holds(raw: bytes) -> None:
        assert any(need in raw.lower() for need in needs)

    holds()


def test_a_secret_is_hidden_however_it_is_spelled() -> None:
    assert redact_text("Authorization: bEaReR abcdefgh12345") == "Authorization: bEaReR REDACTED"


def test_a_guarded_pattern_answers_like_one_without_a_guard() -> None:
    one = regex(r"a(\d)", needs=("a",))
    for text in ("xa1a2", "b1", ""):
        plain = re.compile(r"a(\d)")
        assert (one.search(text) is None) == (plain.search(text) is None)
        assert one.findall(text) == plain.findall(text)
        assert one.sub("-", text) == plain.sub("-", text)
        assert [m[0] for m in one.finditer(text)] == [m[0] for m in plain.finditer(text)]
        assert one.match(text) is None
        assert one.fullmatch(text) is None

"""Touched experts and their imbalance: closed forms against drawing lots."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.core.physics.experts import imbalance, touched


def draw(experts: int, per_token: int, tokens: int, ranks: int, tries: int) -> np.ndarray:
    """Touched experts of each rank, a row for each try, by drawing lots."""
    lots = np.random.default_rng(7)
    found = np.zeros((tries, experts), dtype=bool)
    for _ in range(tokens):
        order = lots.random((tries, experts)).argpartition(per_token, axis=1)[:, :per_token]
        np.put_along_axis(found, order, values=True, axis=1)
    counts: np.ndarray = found.reshape(tries, ranks, experts // ranks).sum(axis=2)
    return counts


@pytest.mark.parametrize(
    ("experts", "per_token", "tokens", "ranks", "tries"),
    [
        (384, 8, 1, 8, 4000), (384, 8, 8, 8, 2000), (384, 8, 16, 8, 2000), (384, 8, 64, 8, 600),
        (256, 8, 4, 8, 2000), (128, 4, 32, 4, 1000), (64, 6, 3, 2, 2000),
    ],
)  # fmt: skip
def test_touched_experts_and_imbalance_are_those_of_drawing_lots(
    experts: int, per_token: int, tokens: int, ranks: int, tries: int
) -> None:
    drawn = draw(experts, per_token, tokens, ranks, tries)
    whole = drawn.sum(axis=1)
    error = whole.std() / tries**0.5
    assert touched(experts, per_token, tokens) == pytest.approx(whole.mean(), abs=4 * error + 1e-9)
    largest = drawn.max(axis=1)
    mean = whole.mean() / ranks
    error = largest.std() / tries**0.5 / mean
    got = imbalance(experts, per_token, tokens, ranks)
    assert got == pytest.approx(largest.mean() / mean, abs=4 * error + 0.003)


def test_kimi_touches_what_is_published_for_it() -> None:
    expected = {1: 8, 8: 60, 16: 110, 32: 188, 64: 284, 128: 358}
    assert {t: round(touched(384, 8, t)) for t in expected} == expected
    assert [round(imbalance(384, 8, t, 8), 1) for t in (1, 8, 64, 256, 1024)] == [
        2.6, 1.5, 1.1, 1.0, 1.0,
    ]  # fmt: skip


@given(st.sampled_from([64, 128, 256, 384]), st.integers(1, 8), st.integers(1, 600))
def test_more_tokens_touch_more_experts_and_never_more_than_there_are(
    experts: int, per_token: int, tokens: int
) -> None:
    here, more = (touched(experts, per_token, t) for t in (tokens, tokens + 1))
    assert 0 < here <= min(experts, tokens * per_token) + 1e-9
    assert here <= more <= experts + 1e-9


@given(st.sampled_from([64, 128]), st.integers(1, 8), st.integers(1, 300), st.sampled_from([2, 4]))
def test_imbalance_is_between_one_and_all_on_one_rank(
    experts: int, per_token: int, tokens: int, ranks: int
) -> None:
    assert 1.0 <= imbalance(experts, per_token, tokens, ranks) <= ranks + 1e-9


def test_without_experts_or_ranks_nothing_is_uneven() -> None:
    assert imbalance(0, 0, 8, 8) == imbalance(384, 8, 8, 1) == 1.0
    assert touched(0, 0, 64) == 0.0

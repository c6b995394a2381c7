"""The landscapes of the search benchmark: as many needs as the survey says, launches counted as there."""

from __future__ import annotations

import random

import pytest

from bench.search.landscape import Landscape, Shape, draw
from bench.search.play import Found, Oracle, judge


@pytest.mark.parametrize(("n", "most"), [(4, 0), (8, 1), (16, 2), (25, 4)])
def test_six_flags_have_one_need(n: int, most: int) -> None:
    drawn = [len(draw(Shape(n=n, causes=2), seed).requires) for seed in range(40)]
    assert max(drawn) == most  # fewer where the dice name a pair twice


def test_what_the_engine_turns_down_is_counted_apart() -> None:
    scape = Landscape(seed=1, n=3, worth=(1, 1, 1), faults=(), requires=((0, 1),))
    oracle = Oracle(scape, random.Random(1))
    kinds = [oracle.launch(mask).kind for mask in (0b001, 0b011, 0b110)]
    assert kinds == ["rejected", "starts", "starts"]
    played = judge(oracle, "best", Found(best=0b011))
    assert (played.launches, played.rejected) == (2, 1)
    assert played.seconds == 802.0

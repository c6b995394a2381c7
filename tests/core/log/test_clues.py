"""A search may look for less text than it has to find."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from triage.core.log.clues import ORDINARY_LINES, clues_of
from triage.core.log.finder import literals_of
from triage.knowledge import load_causes


def test_what_texts_share_is_one_clue_and_the_longest() -> None:
    texts = {0: "CUDA error: out of memory", 1: "CUDA error: no device", 2: "Killed"}
    assert clues_of(texts) == (("CUDA error: ", (0, 1)), ("Killed", (2,)))


def test_what_a_healthy_server_prints_all_day_is_no_clue() -> None:
    texts = {0: "Prefill batch, 1 failed", 1: "Prefill batch, 2 lost"}
    assert clues_of(texts) == ((texts[0], (0,)), (texts[1], (1,)))


WORDS = st.lists(st.sampled_from(["CUDA", "error", "driver", "batch", ":", "é", "no"]), min_size=1)


@given(st.lists(WORDS.map(" ".join), max_size=20, unique=True))
def test_each_text_has_one_clue_that_it_holds(texts: list[str]) -> None:
    numbered = dict(enumerate(texts))
    clues = clues_of(numbered)
    assert sorted(n for _, owners in clues for n in owners) == sorted(numbered)
    assert all(clue in numbered[n] for clue, owners in clues for n in owners)


def test_the_causes_have_far_fewer_clues_than_literals() -> None:
    table = load_causes().table
    assert len(table.clues) < len(table.texts) / 2
    ordinary = [text for text, _ in table.clues if any(text in line for line in ORDINARY_LINES)]
    assert ordinary == []


def test_literals_know_the_clues_of_their_triggers() -> None:
    found = literals_of(["RuntimeError: CUDA lost", "CUDA lost", "no CUDA lost at all"])
    assert found.clues == (("CUDA lost", (1,)),)

"""What is remembered of lines gives the marks that a search of them gives."""

from __future__ import annotations

import random

import pytest

from triage.core.log.finder import Finder, Mark, Plain, literals_of
from triage.finder import lines
from triage.finder.lines import Lines

WORDS = ("out of memory", "] Timed out waiting", " distributed", "NCCL WARN", "é: no", "Error")
HEADS = ("", "[2026-07-01 12:00:00] ", "[2026-07-01 12:00:07 DP1 TP3] ", "[2026-07-01 1] ", "] ")
MORE = ("x" * 500, "2026-07-01T12:00:00Z ", "", "a line", "TP3] y", "Jul 01 12:00:00 host app: ")


def _block(chance: random.Random) -> bytes:
    made = (
        chance.choice(HEADS) + "".join(chance.choices((*WORDS, *MORE), k=chance.randrange(3)))
        for _ in range(300)
    )
    return "".join(f"{line}\n" for line in made).encode()


def _plainly(marks: list[Mark]) -> list[tuple[int, int, set[int], list[int]]]:
    return [(mark.start, mark.stop, set(mark.seen), mark.hits) for mark in marks]


@pytest.mark.parametrize("words", [WORDS, (*WORDS, "TP3"), (*WORDS, "3] y")])
def test_lines_that_are_looked_up_have_the_marks_of_a_search(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "_MOST", 400)
    chance = random.Random(1)
    finder: Finder = Plain(literals_of(words))
    known = Lines([word.encode() for word in words])
    searched: list[int] = []
    given = 0

    def search(block: bytes, start: int, stop: int) -> tuple[list[Mark], int]:
        searched.append(stop - start)
        return finder.scan(block, start, stop)

    for _ in range(20):
        block = b"before\n" + _block(chance)
        given += len(block)
        told = _plainly(known.marks(block, 7, len(block), search))
        assert told == _plainly(finder.scan(block, 7, len(block))[0])
    # Long and dated lines are not remembered, and heads not told apart if a literal may be in one.
    assert sum(searched) < given * (0.75 if words == WORDS else 1)


def test_few_bytes_and_many_are_searched() -> None:
    known = Lines([b"x"])
    assert not any(known.pays(size) for size in (100, 1 << 20) for _ in range(20_000))
    assert not known.pays(1 << 15)
    assert any(known.pays(1 << 15) for _ in range(64))

"""With and without the literal database, a log gives the same marks and the same diagnosis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.core.diagnosis import Diagnosis
from triage.core.log.diagnose import diagnose
from triage.core.log.finder import LONG, WINDOWS, Compile, Finder, Mark, Plain, literals_of
from triage.finder import SMALL, fast, finder, plain
from triage.knowledge import load_causes, load_flag_table

database = pytest.importorskip("triage.finder.database")
CASES = sorted((Path(__file__).parents[2] / "fixtures/cases").glob("*/server.log"))
CAUSES, TABLE = load_causes(), load_flag_table()
WORDS = ("Error", "RuntimeError", "RuntimeError: no", "oomed", "ooo", "no memory", "é")


def marks(found: Finder, raw: bytes, start: int = 0) -> list[Mark]:
    every: list[Mark] = []
    at = start
    while at < len(raw):
        some, upto = found.scan(raw, at, len(raw))
        assert upto > at
        every, at = every + some, upto
    return every


def answer(raw: bytes, how: Compile, size: int = 1 << 18) -> Diagnosis:
    chunks = [raw[at : at + size] for at in range(0, len(raw), size)]
    return diagnose(chunks, CAUSES, source="x", table=TABLE, finder=how)


@pytest.mark.parametrize("log", CASES, ids=lambda path: path.parent.name)
def test_a_recorded_log_gives_the_same_diagnosis(log: Path) -> None:
    raw = log.read_bytes()
    assert answer(raw, fast) == answer(raw, plain)


LONG_O = "o" * 5000
PIECES = st.sampled_from([*WORDS, "x", " ", "\n", "\n\n", "\r", "o", "\x01\x02", "a" * 900, LONG_O])


@given(st.lists(PIECES, max_size=60), st.integers(0, 3))
@settings(max_examples=300, deadline=None)
def test_any_text_has_the_same_marks(pieces: list[str], skipped: int) -> None:
    raw = ("\n" * skipped + "".join(pieces) + "\n").encode()
    literals = literals_of(WORDS)
    one, other = (
        marks(Plain(literals), raw, skipped),
        marks(database.Database(literals), raw, skipped),
    )
    assert one == other
    for mark in one:
        line = raw[mark.start : mark.stop]
        assert b"\n" not in line
        assert raw[mark.stop : mark.stop + 1] == b"\n"
        if len(line) <= LONG:
            assert mark.seen == {n for n, word in enumerate(WORDS) if word.encode() in line}
        assert len(mark.hits) <= WINDOWS


@given(
    st.lists(st.sampled_from([b"\n", b"\n\n", b"x", b"\x8a", b"y" * 3000]), max_size=40), st.data()
)
@settings(max_examples=200, deadline=None)
def test_any_text_has_the_same_number_of_line_ends(
    pieces: list[bytes], data: st.DataObject
) -> None:
    raw = b"".join(pieces)
    start = data.draw(st.integers(0, len(raw)))
    stop = data.draw(st.sampled_from([len(raw), (start + len(raw)) // 2]))
    literals = literals_of(WORDS)
    for found in (Plain(literals), database.Database(literals)):
        assert found.line_ends(raw, start, stop) == raw.count(b"\n", start, stop)


def test_line_ends_are_counted_by_the_library_that_the_base_install_has() -> None:
    pytest.importorskip("stringzilla")
    raw = b"x\n" * 4000
    assert database.bytesum(database.translate(raw, database._LF)) == 4000


def splices() -> st.SearchStrategy[bytes]:
    """Pieces of recorded logs, cut anywhere, one after the other."""

    @st.composite
    def some(draw: st.DrawFn) -> bytes:
        parts = []
        for log in draw(st.lists(st.sampled_from(CASES), min_size=1, max_size=4)):
            raw = log.read_bytes()
            start = draw(st.integers(0, len(raw)))
            parts.append(raw[start : start + draw(st.integers(0, 12_000))])
        return draw(st.sampled_from([b"", b"\n", b"\xe2\x96", b"\r"])).join(parts)

    return some()


@given(splices(), st.integers(1, 5000))
@settings(max_examples=40, deadline=None)
def test_spliced_logs_give_the_same_diagnosis_however_they_are_cut(raw: bytes, size: int) -> None:
    whole = answer(raw, plain)
    assert answer(raw, fast) == whole
    assert answer(raw, fast, size) == whole


def test_a_line_full_of_literals_is_marked_once_and_in_its_windows() -> None:
    literals = literals_of(WORDS)
    raw = b"RuntimeError: no memory " * 200_000 + b"\nError\n"
    for found in (Plain(literals), database.Database(literals)):
        first, second = marks(found, raw)
        assert len(first.hits) == WINDOWS
        assert first.seen == {0, 1, 2, 5}
        assert raw[second.start : second.stop] == b"Error"


@given(st.lists(st.lists(PIECES, min_size=1, max_size=6), min_size=1, max_size=12))
@settings(max_examples=50, deadline=None)
def test_long_lines_have_the_same_marks_however_many_there_are(lines: list[list[str]]) -> None:
    raw = "".join(LONG_O + "".join(parts).replace("\n", "") + "\n" for parts in lines).encode()
    literals = literals_of(WORDS)
    found = database.Database(literals)
    for _ in range(3):  # the first few go another way
        assert marks(found, raw) == marks(Plain(literals), raw)


@given(st.lists(PIECES, min_size=1, max_size=40), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_a_very_long_line_has_the_marks_of_its_beginning(pieces: list[str], times: int) -> None:
    """Its end is searched only if its beginning does not have all the windows."""
    part = "".join(pieces).replace("\n", "")
    raw = (part * (300_000 // (len(part) + 1) // times + 1) + LONG_O * times + "\nError\n").encode()
    literals = literals_of(WORDS)
    whole = Plain(literals)
    whole._early = lambda *_: None  # type: ignore[method-assign]
    assert marks(Plain(literals), raw) == marks(whole, raw)


def test_a_line_that_is_one_word_is_searched_for_what_its_characters_can_be() -> None:
    raw = b"x" * 400_000 + b"RuntimeError: no" + b"x" * 400_000 + b"\n"
    (mark,) = marks(Plain(literals_of(WORDS)), raw)
    assert mark.seen == {0, 1, 2}


def test_many_marks_come_in_several_lists() -> None:
    raw = b"Error\n" * 20_000
    for found in (Plain(literals_of(WORDS)), database.Database(literals_of(WORDS))):
        assert len(found.scan(raw, 0, len(raw))[0]) < 20_000
        assert len(marks(found, raw)) == 20_000


def test_without_literals_nothing_is_marked() -> None:
    assert marks(database.Database(literals_of(())), b"a\n") == []


def test_the_database_is_for_processes_that_read_much() -> None:
    assert finder(SMALL) is fast


def test_without_the_package_the_plain_finder_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "triage.finder.database", None)
    fast.cache_clear()
    try:
        assert isinstance(fast(literals_of(("no package",))), Plain)
    finally:
        fast.cache_clear()


class Counted:
    """Chunks that are made when asked for."""

    def __init__(self, chunks: Sequence[bytes]) -> None:
        self.chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.chunks)


def test_a_literal_that_spans_chunks_is_found() -> None:
    raw = b"x" * (1 << 18) + b"\n[2026-07-01 12:00:00] ValueError: torn\n"
    cut = raw.index(b"Error") + 2
    for how in (plain, fast):
        torn = diagnose(Counted([raw[:cut], raw[cut:]]), CAUSES, source="x", finder=how)
        assert torn == diagnose([raw], CAUSES, source="x", finder=how)

"""What was read before may only save time: no line and no answer may depend on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.core.diagnosis import Diagnosis
from triage.core.log import gather
from triage.core.log.diagnose import diagnose
from triage.core.log.lines import as_printed, peel
from triage.core.log.reading import Reading, reader_of
from triage.core.log.repeats import Repeats, repeats_of
from triage.core.log.signatures import matcher_of
from triage.knowledge import load_causes

CASES = sorted((Path(__file__).parents[3] / "fixtures/cases").glob("*/server.log"))
CAUSES = load_causes()
READER = reader_of(matcher_of(CAUSES, gather.FIXED))
SAID = READER.read("nothing", (), whole=True)


def forget() -> None:
    reader_of.cache_clear()
    repeats_of.cache_clear()


def answer(raw: bytes) -> Diagnosis:
    return diagnose([raw], CAUSES, source="x")


def test_a_line_that_was_read_before_is_the_line_that_reading_it_gives() -> None:
    repeats = Repeats()
    known = 0
    for log in CASES[::3]:
        for number, raw in enumerate(log.read_bytes().split(b"\n"), start=1):
            text = as_printed(raw) if len(raw) < 4096 else None
            if text is None:
                continue
            line = peel(text, number * 7, number, None)
            for _ in range(2):  # by what other lines left, then by its own
                if (found := repeats.get(raw, number * 7, number)) is not None:
                    known += 1
                    assert found == (line, SAID), raw
                repeats.add(raw, line, SAID)
    assert known > 10_000


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (b"[2026-07-01 12:00:00 TP3] Load weight begin", b"[2026-07-01 12:00:09] Load weight begin"),
        (b"[2026-07-01 12:00:00] n:1:2 [3] NCCL WARN x", b"[2026-07-01 12:00:01 TP1] n:1:2 [3] NCCL WARN x"),
        (b"[2026-07-01 12:00:00] n:1:2 [3] NCCL WARN x", b"n:1:2 [3] NCCL WARN x"),
        (b"[2026-07-01 12:00:00] (F pid=7) x", b"[2026-07-01 12:00:00] [2026-07-01 12:00:00] (F pid=7) x"),
        (b"[2026-07-01 12:00:00] ERROR a.b:1: x", b"[2026-07-01 12:00:00 DP1 TP1] ERROR a.b:1: x\r"),
        (b"[2026-07-01 12:00:00] x", b"[2026-07-01T12:00:00] x"),
        (b"[2026-07-01 12:00:00] x", b"[2026-07-01 12:00:00,123 TP2] x"),
    ],
)  # fmt: skip
def test_a_head_that_differs_is_read(first: bytes, then: bytes) -> None:
    repeats = Repeats()
    repeats.add(first, peel(first.decode(), 0, 1, None), SAID)
    found = repeats.get(then, 0, 1)
    assert found is None or found[0] == peel(str(as_printed(then)), 0, 1, None)


def test_a_head_alone_is_no_reason_to_read_again() -> None:
    repeats = Repeats()
    first = b"[2026-07-01 12:00:00 TP3] Load weight begin"
    repeats.add(first, peel(first.decode(), 0, 1, None), SAID)
    found = repeats.get(b"[2026-07-02 01:02:03 DP0 TP1] Load weight begin", 5, 6)
    assert found is not None
    assert (found[0].rank, found[0].time, found[0].offset) == ("DP0 TP1", "2026-07-02T01:02:03", 5)


def test_little_is_kept_of_many_lines() -> None:
    repeats = Repeats()
    for number in range(10_000):
        raw = b"[2026-07-01 12:00:00 TP%d] line %d" % (number, number)
        repeats.add(raw, peel(raw.decode(), 0, 1, None), SAID)
        raw = b"line %d" % number
        repeats.add(raw, peel(raw.decode(), 0, 1, None), SAID)
    kept = [v for name in vars(repeats) if isinstance(v := getattr(repeats, name), dict)]
    assert all(len(one) <= 4096 for one in kept)
    assert sum(map(len, kept)) > 100


def test_no_answer_depends_on_the_logs_before_it() -> None:
    logs = [log.read_bytes() for log in CASES[::40]]
    alone = []
    for raw in logs:
        forget()
        alone.append(answer(raw))
    forget()
    assert [answer(raw) for raw in logs] == alone
    assert [answer(raw) for raw in reversed(logs)] == alone[::-1]


def test_a_text_that_a_runtime_cut_in_two_says_nothing_of_the_whole_one() -> None:
    text = b"torch.AcceleratorError: CUDA error: unspecified launch failure"
    at = text.index(b"UDA error")  # the only text in it that a cause is found by
    stamp = b"2026-07-01T12:00:00.123456789Z stderr "
    cut = stamp + b"P " + text[:at] + b"\n" + stamp + b"F " + text[at:] + b"\n"
    whole = text + b"\n"
    forget()
    expected = answer(whole)
    forget()
    answer(cut)
    assert answer(whole) == expected
    assert expected.cause is not None


def test_a_reading_is_of_its_text_alone() -> None:
    assert isinstance(SAID, Reading)
    before = READER.read("nothing", (), whole=True)  # SAID may have been put out by other tests
    again = READER.read("nothing", (), whole=True)
    assert again is before

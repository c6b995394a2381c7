"""A line of tens of thousands of characters without a space is read in time that grows with it."""

import time

import pytest

from triage.core.log.endings import ending
from triage.core.log.nested import may_hold, within

LONG = 64_000
TAILS = ("PBS: job killed", "Error", "NULL value", " Error", "NCCL WARN ", "] ", ":1] ", "")
WORDS = ("a", "A", "a.", "/a", "1", "[", "\x1b[", " ", "E1 ", "x.cc:1 ", "'", ":")
SECONDS = 1.0  # it takes a few hundredths; a pattern that begins anywhere takes minutes


@pytest.mark.parametrize("word", WORDS)
def test_what_ends_a_launch_is_looked_for_in_linear_time(word: str) -> None:
    begin = time.process_time()
    for tail in TAILS:
        ending((word * LONG)[:LONG] + tail)
    assert time.process_time() - begin < SECONDS


@pytest.mark.parametrize("word", [word for word in WORDS if word not in ("'", "\x1b[")])
def test_what_a_record_says_is_read_in_linear_time(word: str) -> None:
    said = (word * LONG)[:LONG]
    text = f'{{"level": "ERROR", "ts": "2026-01-01T00:00:00Z", "msg": "{said}"}}'
    begin = time.process_time()
    assert may_hold(text)
    assert within(text) is not None
    assert time.process_time() - begin < SECONDS

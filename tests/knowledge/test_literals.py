"""Healthy logs hardly hold a text that is looked for: that is what makes a scan fast."""

from __future__ import annotations

from collections import Counter

from bench.generate import serving
from triage.core.log.finder import Finder
from triage.core.log.gather import FIXED
from triage.core.log.signatures import matcher_of
from triage.finder import fast
from triage.knowledge import load_causes

TOO_OFTEN = 5  # a MB
MATCHER = matcher_of(load_causes(), FIXED)


def seen(finder: Finder, raw: bytes) -> Counter[str]:
    raw = raw[: raw.rfind(b"\n") + 1]
    found: Counter[str] = Counter()
    at = 0
    while at < len(raw):
        marks, at = finder.scan(raw, at, len(raw))
        found.update(MATCHER.literals.texts[n] for mark in marks for n in mark.seen)
    return found


def test_a_serving_log_holds_no_text_that_is_looked_for() -> None:
    raw = serving(["nothing of note"], 4_000_000)
    served = raw[raw.index(b"ready to roll!") :]
    often = {
        text: count
        for text, count in seen(fast(MATCHER.literals), served).items()
        if count > TOO_OFTEN * len(served) / 1_000_000
    }
    assert often == {}

"""Placeholders of remedies: numbers that follow from the message and the launch."""

from __future__ import annotations

import pytest

from triage.core.config import Value
from triage.core.log.compute import filled, in_words, placeholder_faults

FLAGS: dict[str, Value] = {"tp-size": "8", "mem-fraction-static": "0.92", "enable-x": True}


@pytest.mark.parametrize(
    ("text", "captures", "expected"),
    [
        ("{limit}", {"limit": "512"}, "512"),
        ("{limit}", {}, None),
        ("{gcd heads tp-size}", {"heads": "28"}, "4"),
        ("{gcd heads tp-size}", {"heads": "64"}, None),  # it divides already: no remedy
        ("{shard tp-size size block}", {"size": "576", "block": "128"}, "4"),
        ("{shard tp-size size block}", {"size": "8", "block": "128"}, None),
        ("{less mem-fraction-static 0.05}", {}, "0.87"),
        ("{less dp-size 1}", {}, None),
        ("{less dp-size|4 1}", {}, "3"),
        ("{up value step}", {"value": "100", "step": "64"}, "128"),
        ("{down value step}", {"value": "100", "step": "64"}, "64"),
        ("{spare experts ranks}", {"experts": "257", "ranks": "8"}, "7"),
        ("{spare experts ranks}", {"experts": "256", "ranks": "8"}, None),
        ("{share free total}", {"free": "70.5", "total": "80"}, "0.86"),
        ("{port port}", {"port": "30000"}, "30100"),
        ("{port port}", {"port": "65500"}, "65400"),
        ("{first allowed}", {"allowed": "['triton', 'fa4']"}, "triton"),
        ("{flag tp-size}", {}, "8"),
        ("{flag enable-x}", {}, None),
        ("of {gcd heads tp-size} and {limit}", {"heads": "6", "limit": "9"}, "of 2 and 9"),
    ],
)
def test_a_placeholder_is_filled_or_gives_nothing(
    text: str, captures: dict[str, str], expected: str | None
) -> None:
    assert filled(text, captures, FLAGS) == expected


def test_without_a_log_a_placeholder_is_said_in_words() -> None:
    assert in_words("Ask for {limit} tokens") == "Ask for <limit> tokens"
    said = in_words("Choose {gcd heads tp-size}")
    assert said == "Choose <the largest number that divides heads and tp-size>"


def test_a_wrong_placeholder_is_told() -> None:
    assert placeholder_faults("{heads}", frozenset({"heads"})) == ()
    assert placeholder_faults("{heads}", frozenset()) == ("no pattern captures {heads}",)
    assert placeholder_faults("{lcm a b}", frozenset()) == ("there is no function lcm",)
    assert placeholder_faults("{gcd a}", frozenset()) == ("gcd takes 2 arguments or more",)

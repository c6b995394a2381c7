"""Numbers in a message that name a flag: 576 % 128, 8 vs 32, 16 of 128 heads.

In:  a message, the values of a launch's flags. Out: flags with the sum that points at them.
Not: flags that a message names in words (suspects.py).

A size that the parallel layout has cut stands in a message as a part (576, 8, 16) beside
the whole or a block (128, 32): where one is a multiple of the other by the width of a
group, that group's flag is suspected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from triage.core.config import Value
from triage.core.regex import regex

_MOST = 12  # numbers of a message that are looked at
_INTEGER = regex(r"(?<![\w.\-])\d{1,12}(?![\w.]*\w)")
# Only sizes are worth a sum: every message has numbers.
_SIZES = (
    "size", "shape", "dim", "head", "expert", "divisib", "multiple", "partition", "shard", "token",
    "block", "match", "%", "layer", "page", "length", "width", "rank", "pool", "batch",
)  # fmt: skip
_VERSUS = regex(r"\bvs\b", needs=("vs",))
# Words of a message that mean a part of something that a group of ranks shares.
_PART = regex(
    r"partition|shard|attn_tp|local_\w*(?:head|expert|size)",
    needs=("partition", "shard", "attn_tp", "local_"),
)
# Flags that divide a model's sizes among ranks.
_WIDTHS = (
    "tp-size", "ep-size", "pp-size", "dp-size", "attn-cp-size", "moe-dp-size",
    "moe-dense-tp-size", "dcp-size", "attention-context-parallel-size",
    "tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size",
)  # fmt: skip
# Flags whose product is a size of its own.
_FACTORS = ("page-size", "speculative-num-draft-tokens", "speculative-num-steps",
            "speculative-eagle-topk", "block-size")  # fmt: skip


def related(message: str, values: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    """Flags and reasons, the plainest sum first; a flag may come more than once.

    Args:
        message: The root's text with the rest of its message.
        values: Flags of the launch that differ from the defaults.
    """
    if not any(map(message.__contains__, _SIZES)) and _VERSUS.search(message) is None:
        return
    numbers = list(dict.fromkeys(int(n) for n in _INTEGER.findall(message)))[:_MOST]
    widths = {name: _size(values.get(name)) for name in _WIDTHS}
    widths = {name: size for name, size in widths.items() if size > 1}
    yield from _derived(numbers, widths)
    for part in numbers:
        for whole in numbers:
            if 1 < part < whole and whole % part == 0:
                for name, size in widths.items():
                    if size == whole // part:
                        yield name, f"{whole} is {size} times {part}, and --{name} is {size}"
    factors = {name: _size(values.get(name)) for name in _FACTORS}
    for number in numbers:
        for name, size in factors.items():
            if size > 1 and number > size and number % size and "multiple" in message:
                yield name, f"{number} is no multiple of {size}, the value of --{name}"
    if _PART.search(message):
        for name in ("moe-dense-tp-size", "ep-size", "tp-size", "tensor-parallel-size"):
            if name in widths:
                yield name, f"the message is about a rank's share, and --{name} is {widths[name]}"


def _derived(numbers: list[int], widths: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Groups whose width is a quotient of two flags: attention within data parallelism."""
    tp = widths.get("tp-size", 1)
    for name, why in (
        ("dp-size", "attention"),
        ("ep-size", "experts"),
        ("attn-cp-size", "context"),
    ):
        size = widths.get(name, 1)
        if size > 1 and tp % size == 0 and 1 < tp // size < tp and tp // size in numbers:
            text = f"{tp // size} ranks share the {why}: --tp-size {tp} over --{name} {size}"
            yield name, text
            yield "tp-size", text


def _size(value: object) -> int:
    return int(value) if isinstance(value, str) and value.isdecimal() else 0

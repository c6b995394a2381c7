"""Learns what an unknown program puts in front of every line of a log.

In:  the first bytes of a log. Out: a pattern of the foreign prefix, or None.
Not: the wrappers that are known by their shape (lines.py).

What `docker compose`, journald or Ray print is known; a site's own collector is not. Its prefix
shows where lines of an engine begin behind the same few characters: numbers in them may differ,
the rest is the same in nearly all lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from triage.core.log.lines import bare
from triage.core.log.own_format import own_format
from triage.core.regex import regex

SAMPLE = 1 << 16  # bytes from the start that are looked at
_LINES = 160
_PATIENCE = 24  # lines after which one of them must have shown a prefix
_LONG = 2000  # bytes of a line that is not looked at
# Beginnings of lines that are looked for first, because that costs next to nothing.
_PLAIN = (b"\n[20", b'\n  File "', b"\nTraceback (most recent call last)")
_NATIVE = 4  # lines that begin as an engine's do: nothing foreign is in front
_LEAST = 3  # lines that must show the same prefix
_SHARE = 0.8  # of all lines that must begin with it
_LONGEST = 120  # characters of a prefix
# How lines begin that an engine, Python or a library prints.
_OWN = regex(
    r"\[20\d\d-|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)(?: \d\d-\d\d |: {3,5})|Traceback \(most"
    r" recent|  File \"|Loading |Multi-thread loading|usage: |\((?:EngineCore|APIServer|Worker)"
    r"|\[Gloo\]|\[rank\d|server_args="
)
# Where such a line begins behind a prefix.
_BEGIN = regex(
    r"\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d|Traceback \(most recent call last\):$"
    r"|  File \"[^\"]+\", line \d|(?:INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d|INFO: {5}"
    r"|Loading safetensors checkpoint|usage: |\w+\.py: error: |server_args="
    r"|\((?:EngineCore|APIServer|Worker)\w* pid=|\[Gloo\] Rank"
)
_PART = regex(
    r"(?P<level>\b(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\b|\bstd(?:out|err)\b)"
    r"|(?P<number>\d+)|(?P<gap>\s+)|(?P<text>[^\d\s]+?(?=\b(?:DEBUG|INFO|WARN|ERROR|CRIT|std)|[\d\s]|$))"
)


_STAMP = r"\[20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?Z?\] "
_STAMPED_FRAME = regex((r"(?m)^" + _STAMP + r'  File "[^"\n]{1,300}", line \d').encode())


def learned(chunks: Iterable[bytes]) -> tuple[re.Pattern[str] | None, Iterator[bytes]]:
    """The foreign prefix of a log, and all its chunks again."""
    source = iter(chunks)
    head: list[bytes] = []
    size = 0
    for chunk in source:
        head.append(chunk)
        size += len(chunk)
        if size >= SAMPLE:
            break
    return prefix_of(b"".join(chunk[:SAMPLE] for chunk in head)), chain(head, source)


def prefix_of(head: bytes) -> re.Pattern[str] | None:
    """The pattern of what stands in front of nearly every line; None if nothing foreign does."""
    head = head[:SAMPLE]
    if (own := own_format(head, bare)) is not None:
        return own
    # A time in brackets before a frame: an engine's own records have none there.
    if b']   File "' in head and _STAMPED_FRAME.search(head) is not None:
        return re.compile(_STAMP)
    plain = 0
    stamped = head.startswith(b"[20") and head[11:12] == b"T"  # not as an engine prints it
    for start in _PLAIN[stamped:]:
        at = head.find(start)
        while at >= 0:
            plain += 1
            if plain >= _NATIVE:
                return None
            at = head.find(start, at + 1)
    shapes: dict[str, int] = {}
    texts: list[str] = []
    native = 0
    for raw in head.split(b"\n", _LINES)[:_LINES]:
        if not raw.strip() or len(raw) > _LONG:
            continue
        if len(texts) == _PATIENCE and not shapes:
            return None
        text = bare(raw)
        texts.append(text)
        if _OWN.match(text) is not None:
            native += 1
            if native >= _NATIVE:
                return None
            continue
        found = _BEGIN.search(text[: _LONGEST + 80])
        if found is None or not 0 < found.start() <= _LONGEST or "exception: " in text[:_LONGEST]:
            continue
        shape = _shape(text[: found.start()])
        shapes[shape] = shapes.get(shape, 0) + 1
    if not shapes:
        return None
    best = max(shapes, key=lambda shape: (shapes[shape], -len(shape)))
    pattern = re.compile(best)
    fits = sum(pattern.match(text) is not None for text in texts)
    return pattern if shapes[best] >= _LEAST and fits >= _SHARE * len(texts) else None


def _shape(prefix: str) -> str:
    """A pattern of the prefix in which numbers, levels and inner gaps may differ."""
    out: list[str] = []
    for part in _PART.finditer(prefix):
        if part["level"]:
            std = part["level"].startswith("std")
            out.append(r"std(?:out|err)" if std else r"[A-Z]{4,8}")
        elif part["number"]:
            out.append(r"\d{1,20}")
        elif part["gap"]:
            inner = 0 < part.end() < len(prefix)
            ahead = part.start() == 0 and part.end() < len(prefix)
            out.append(r"\s{0,40}" if ahead else r"\s{1,40}" if inner else re.escape(part["gap"]))
        else:
            out.append(re.escape(part["text"]))
    return "".join(out)

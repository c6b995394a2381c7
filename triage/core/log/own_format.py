"""Learns how a logger of the user's own begins a record.

In:  the first bytes of a log. Out: a pattern of what stands in front of a message, or None.
Not: prefixes that a collector puts in front of every line (framing.py).

Who sets a format for the engine's logger loses the form that is known: `[time][LEVEL]: TP3 Load
weight begin`. Landmarks show where messages begin; what stands in front of them is the form,
with the rank in it or without. Tracebacks and other programs' lines have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from triage.core.regex import regex

_MARKS = (
    b"Init torch distributed begin", b"Load weight begin", b"Init torch distributed ends",
    b"Load weight end", b"KV Cache is allocated", b"Memory pool end",
    b"Capture cuda graph begin", b"server_args=ServerArgs(", b"sglang is using nccl==",
)  # fmt: skip
_LEAST = 3  # messages that must begin in the same way
_EACH = 8  # messages of each landmark that are looked at
_LONGEST = 160  # characters in front of a message
_TAG = r"(?:(?:DP|PP|TP|EP|ATTN_?[A-Z]{2})\d{1,4}[ ,]?){1,4}"
# As an engine begins a record, whatever a collector put in front of it.
_NATIVE = regex(
    r"(?:^|\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?: [A-Z][A-Z_]*\d+)*\] ?)"
    r"(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) [\w.-]{1,80}:\d{1,6}: )?$"
)
_TAIL = regex(rf"(?P<ahead>.*?)(?P<tag>[\[(<{{]?\b{_TAG}[\])>}}]?)(?P<behind>.*)")
_PART = regex(
    r"(?P<level>\b(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b)|(?P<file>[\w./-]+\.py\b)"
    r"|(?P<place>\b[A-Za-z_]\w*(?:\.[\w<>]+)+)"
    r"|(?P<letter>\b[DIWEF](?=\d{4}))|(?P<number>\d+)|(?P<gap>\s+)|(?P<text>[^\s\w]+|[A-Za-z_]+)"
)


def own_format(head: bytes, bare: Callable[[bytes], str]) -> re.Pattern[str] | None:
    """The pattern in front of a message, with the rank as `tag`; None for a form that is known.

    Args:
        head: The first bytes of a log.
        bare: Takes off the wrappers that are known by their shape.
    """
    shapes: dict[str, int] = {}
    for mark in _MARKS:
        at = head.find(mark)
        for _ in range(_EACH):
            if at < 0:
                break
            start = head.rfind(b"\n", 0, at) + 1
            if at - start <= _LONGEST:
                end = head.find(b"\n", at)
                text = bare(head[start : end if end > 0 else len(head)])
                ahead = text[: max(0, text.find(mark.decode()))]
                if _NATIVE.search(ahead) is not None:
                    return None
                shape = _shape(ahead)
                shapes[shape] = shapes.get(shape, 0) + 1
            at = head.find(mark, at + 1)
    best = max(shapes, key=lambda shape: shapes[shape], default="")
    return re.compile(f"(?P<own>{best})") if best and shapes[best] >= _LEAST else None


def _shape(ahead: str) -> str:
    """The form of one record's beginning, where its numbers, level and rank may differ."""
    found = _TAIL.fullmatch(ahead)
    if found is None:
        return _loose(ahead)
    opens, closes = re.escape(found["tag"][:1]), re.escape(found["tag"].rstrip(" ,")[-1:])
    opens = opens if found["tag"][0] in "[(<{" else ""
    closes = closes if found["tag"].rstrip(" ,")[-1] in "])>}" else ""
    tag = rf"(?:{opens}(?P<tag>{_TAG}){closes}{_loose(found['behind'])})?"
    return _loose(found["ahead"]) + tag


def _loose(text: str) -> str:
    out: list[str] = []
    for part in _PART.finditer(text):
        if part["level"]:
            out.append("[A-Z]{4,8}")
        elif part["file"]:
            out.append(r"[\w./-]{1,80}\.py")
        elif part["place"]:
            out.append(r"[\w.<>]{1,80}")
        elif part["letter"]:
            out.append("[A-Z]")
        elif part["number"]:
            out.append(r"\d{1,20}")
        elif part["gap"]:
            out.append(r"\s{1,12}")
        else:
            out.append(re.escape(part["text"]))
    return "".join(out)

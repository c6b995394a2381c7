"""Faults of a pattern that show without a log: what it costs to look for it, and to try it.

In:  a regular expression. Out: one sentence for each fault.
Not: whether it matches what it should (check.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from triage.core.log.clues import ORDINARY_LINES
from triage.core.log.literals import cover
from triage.core.log.signatures import is_ordinary

MAX_REPEAT = 200
WHOLE = 6  # characters of the text by which a line is found
PART = 4  # the same where the line only supports or refutes a cause


def literal_faults(text: str, least: int, *, always: bool = True) -> Iterator[str]:
    """What makes the lines of a pattern hard to find: no text, a short one, an ordinary one.

    Args:
        text: The pattern.
        least: Characters that the text must have.
        always: Whether its lines are looked for all the time, so that they must be rare.
    """
    try:
        needed = cover(text)
    except (re.error, RecursionError):
        return  # pattern_faults says so
    if needed is None or min(map(len, needed)) < least:
        yield f"no text of {least} characters is in every line that it matches"
        return
    for literal in sorted(needed) if always else ():
        if not is_ordinary(literal) and any(literal in line for line in ORDINARY_LINES):
            yield f"every healthy log is full of its text {literal!r}"


def pattern_faults(text: str) -> Iterator[str]:
    """What makes a pattern unfit: it must mean the same in re, RE2 and Hyperscan, in linear time.

    So: no look-around, no back-reference, no unbounded repeat inside or right behind
    another one of the same characters, and no bounded repeat above 200.
    """
    try:
        re.compile(text)
        tree = re._parser.parse(text)  # type: ignore[attr-defined]
    except (re.error, RecursionError) as error:
        yield f"does not compile ({error})"
        return
    yield from dict.fromkeys(_faults(tree, unbounded=False))


def _faults(node: Any, *, unbounded: bool) -> Iterator[str]:
    yield from _in_a_row(node)
    for operation, value in node:
        name = str(operation)
        if name in ("ASSERT", "ASSERT_NOT"):
            yield "look-around"
        elif name in ("GROUPREF", "GROUPREF_EXISTS"):
            yield "back-reference"
        elif name in _REPEATS:
            _, high, inner = value
            endless = str(high) == "MAXREPEAT"
            if endless and unbounded:
                yield "nested unbounded repeats"
            if not endless and high > MAX_REPEAT:
                yield f"a repeat above {MAX_REPEAT}"
            yield from _faults(inner, unbounded=unbounded or endless)
        elif name == "SUBPATTERN":
            yield from _faults(value[-1], unbounded=unbounded)
        elif name == "ATOMIC_GROUP":
            yield from _faults(value, unbounded=unbounded)
        elif name == "BRANCH":
            for branch in value[1]:
                yield from _faults(branch, unbounded=unbounded)


def _in_a_row(node: Any) -> Iterator[str]:
    """Unbounded repeats between which nothing must stand: a line can be split in many ways."""
    before: frozenset[int] = frozenset()  # what the last one can match
    for operation, value in node:
        name = str(operation)
        if name in _REPEATS and str(value[1]) == "MAXREPEAT":
            now = _characters(value[2]) or frozenset()
            if before & now:
                yield "two unbounded repeats of the same characters in a row"
            before = now
        elif name not in _REPEATS or value[0]:
            before = frozenset()


def _characters(node: Any) -> frozenset[int] | None:
    """The ASCII characters that one item can match; None if it is more than a character."""
    if len(node) != 1:
        return None
    name, value = str(node[0][0]), node[0][1]
    if name == "SUBPATTERN":
        return _characters(value[-1])
    if name not in ("ANY", "IN", "LITERAL", "NOT_LITERAL", "CATEGORY"):
        return None
    one = re.compile(_source(name, value))
    return frozenset(code for code in range(128) if one.fullmatch(chr(code)))


def _source(name: str, value: Any) -> str:
    """The one-character pattern that the parser read."""
    if name == "ANY":
        return "."
    if name == "LITERAL":
        return re.escape(chr(value))
    if name == "NOT_LITERAL":
        return f"[^{re.escape(chr(value))}]"
    if name == "CATEGORY":
        return _CATEGORIES[str(value)]
    parts = []
    for kind, item in value:
        match str(kind):
            case "NEGATE":
                parts.append("^")
            case "LITERAL":
                parts.append(re.escape(chr(item)))
            case "RANGE":
                parts.append(f"{re.escape(chr(item[0]))}-{re.escape(chr(item[1]))}")
            case _:
                parts.append(_CATEGORIES[str(item)])
    return f"[{''.join(parts)}]"


_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d", "CATEGORY_NOT_DIGIT": r"\D", "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S", "CATEGORY_WORD": r"\w", "CATEGORY_NOT_WORD": r"\W",
}  # fmt: skip

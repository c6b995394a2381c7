"""Which plain texts must occur for a regular expression to match.

In:  a regular expression.
Out: a set of literals, one of which every matching line contains; or None.
Not: matching (signatures.py) or looking for literals (finder.py).
"""

from __future__ import annotations

import re
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

# A scanner looks for literals in raw bytes. There, JSON escapes these characters
# and UTF-8 needs several bytes for others, so a literal stops at each.
_ESCAPED = frozenset('"\\<>&')
SHORTEST = 3


def cover(pattern: str) -> frozenset[str] | None:
    """Literals of which at least one occurs in each text that `pattern` matches.

    None if there are none of `SHORTEST` characters or more, or if the pattern
    ignores case: such a pattern must be tried on every line.
    """
    parsed = _parser.parse(pattern)
    if parsed.state.flags & re.IGNORECASE:
        return None
    return _of_sequence(parsed)


def _of_sequence(items: Any) -> frozenset[str] | None:
    """The best cover among the parts of a sequence: any one part must match."""
    best: frozenset[str] | None = None
    run = ""
    for op, arg in [*items, (None, None)]:
        if op is _constants.LITERAL and _plain(chr(arg)):
            run += chr(arg)
            continue
        best = _better(best, frozenset({run}) if len(run) >= SHORTEST else None)
        run = ""
        if op is not None:
            best = _better(best, _of_item(op, arg))
    return best


def _of_item(op: Any, arg: Any) -> frozenset[str] | None:
    if op is _constants.SUBPATTERN:
        _, add_flags, _, inner = arg
        return None if add_flags & re.IGNORECASE else _of_sequence(inner)
    if op in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
        low, _, inner = arg
        return _of_sequence(inner) if low >= 1 else None
    if op is _constants.ATOMIC_GROUP:
        return _of_sequence(arg)
    if op is _constants.BRANCH:
        covers = [_of_sequence(branch) for branch in arg[1]]
        if all(part is not None for part in covers):
            return frozenset().union(*(part for part in covers if part is not None))
    return None


def _better(old: frozenset[str] | None, new: frozenset[str] | None) -> frozenset[str] | None:
    """The cover whose shortest literal is longer: it hits fewer innocent lines."""
    if old is None or new is None:
        return new if old is None else old
    return new if min(map(len, new)) > min(map(len, old)) else old


def _plain(char: str) -> bool:
    return " " <= char <= "~" and char not in _ESCAPED


def only_text(pattern: str) -> str | None:
    """The text that the pattern is, if it is nothing but text."""
    parsed = _parser.parse(pattern)
    if parsed.state.flags & re.IGNORECASE or not all(op is _constants.LITERAL for op, _ in parsed):
        return None
    return "".join(chr(arg) for _, arg in parsed)

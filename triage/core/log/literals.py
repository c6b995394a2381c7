"""Which plain texts must occur for a regular expression to match.

In:  a regular expression.
Out: a set of literals, one of which every matching line contains; or None.
Not: matching (signatures.py) or looking for literals (finder.py).
"""

from __future__ import annotations

import re
from functools import lru_cache
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

# A scanner looks for literals in raw bytes. There, JSON escapes these characters
# and UTF-8 needs several bytes for others, so a literal stops at each.
_ESCAPED = frozenset('"\\<>&')
SHORTEST = 3
_LONG = 14  # characters; with so many a text is in no innocent line, whatever follows
_FEW = 8  # literals that one part of a pattern may have
_NOTHING = frozenset({""})
_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)


@lru_cache(maxsize=4096)  # a drafted cause changes one pattern of thousands
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
    run = _NOTHING  # all texts that the parts up to here can be, as far back as they are few
    for op, arg in items:
        texts = _texts(op, arg)
        if texts is not None and len(run) * len(texts) <= _FEW:
            run = frozenset(one + other for one in run for other in texts)
            continue
        best = _better(best, _long_enough(run))
        run = texts or _NOTHING
        best = _better(best, _of_item(op, arg))
    return _better(best, _long_enough(run))


def _of_item(op: Any, arg: Any) -> frozenset[str] | None:
    if op is _constants.SUBPATTERN:
        _, add_flags, _, inner = arg
        return None if add_flags & re.IGNORECASE else _of_sequence(inner)
    if op in _REPEATS:
        low, _, inner = arg
        return _of_sequence(inner) if low >= 1 else None
    if op is _constants.ATOMIC_GROUP:
        return _of_sequence(arg)
    if op is _constants.BRANCH:
        covers = [_of_sequence(branch) for branch in arg[1]]
        if all(part is not None for part in covers):
            return _least(frozenset().union(*(part for part in covers if part is not None)))
    return None


def _texts(op: Any, arg: Any) -> frozenset[str] | None:
    """All texts that an item can be, if they are few and plain."""
    if op is _constants.LITERAL:
        return frozenset({chr(arg)}) if _plain(chr(arg)) else None
    if op is _constants.IN:
        chars = [chr(value) for kind, value in arg if kind is _constants.LITERAL]
        few = len(chars) == len(arg) <= _FEW and all(map(_plain, chars))
        return frozenset(chars) if few else None
    if op is _constants.SUBPATTERN:
        return None if arg[1] & re.IGNORECASE else _joined(arg[3])
    if op in _REPEATS:
        low, high, inner = arg
        texts = _joined(inner) if high == 1 else None
        return texts | _NOTHING if texts is not None and low == 0 else texts
    if op is _constants.BRANCH:
        parts = [_joined(branch) for branch in arg[1]]
        if any(part is None for part in parts):
            return None
        found = frozenset().union(*(part for part in parts if part is not None))
        return found if len(found) <= _FEW else None
    return None


def _joined(items: Any) -> frozenset[str] | None:
    """All texts that a sequence can be, if they are few and plain."""
    found = _NOTHING
    for op, arg in items:
        texts = _texts(op, arg)
        if texts is None or len(found) * len(texts) > _FEW:
            return None
        found = frozenset(one + other for one in found for other in texts)
    return found


def _long_enough(texts: frozenset[str]) -> frozenset[str] | None:
    return _least(texts) if min(map(len, texts)) >= SHORTEST else None


def _least(texts: frozenset[str]) -> frozenset[str]:
    """Without the texts that hold another of them."""
    return frozenset(
        text for text in texts if not any(other != text and other in text for other in texts)
    )


def _better(old: frozenset[str] | None, new: frozenset[str] | None) -> frozenset[str] | None:
    """The cover whose shortest literal is longer, up to a point; then the one of fewer literals.

    It hits fewer innocent lines.
    """
    if old is None or new is None:
        return new if old is None else old
    return new if _worth(new) > _worth(old) else old


def _worth(texts: frozenset[str]) -> tuple[int, int, int]:
    shortest = min(map(len, texts))
    return min(shortest, _LONG), -len(texts), shortest


def _plain(char: str) -> bool:
    return " " <= char <= "~" and char not in _ESCAPED


@lru_cache(maxsize=4096)
def only_text(pattern: str) -> str | None:
    """The text that the pattern is, if it is nothing but text."""
    parsed = _parser.parse(pattern)
    if parsed.state.flags & re.IGNORECASE or not all(op is _constants.LITERAL for op, _ in parsed):
        return None
    return "".join(chr(arg) for _, arg in parsed)

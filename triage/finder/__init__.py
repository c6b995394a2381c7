"""Finds literals with Hyperscan where it is there and pays, else without.

In:  how many bytes are to be searched. Out: what compiles the literals (core's `Compile`).
Not: what a hit means (triage.core.log).

Hyperscan costs about as much to import and to compile as searching a few hundred
kilobytes without it, so a short log does not touch it.
"""

from __future__ import annotations

from functools import cache

from triage.core.log.finder import Compile, Finder, Literals, Plain

SMALL = 1 << 18  # bytes that are searched sooner than Hyperscan is ready


class _Searched:
    """Bytes that this process was asked to search so far."""

    bytes = 0


def finder(size: int) -> Compile:
    """What finds literals in `size` more bytes soonest."""
    _Searched.bytes += size
    return fast if _Searched.bytes >= SMALL else plain


@cache
def plain(literals: Literals) -> Finder:
    """The finder that needs no package."""
    return Plain(literals)


@cache
def fast(literals: Literals) -> Finder:
    """The fastest finder that this installation has."""
    try:
        from triage.finder.database import Database
    except ImportError:
        return plain(literals)
    return Database(literals)

"""A literal database of Hyperscan (Vectorscan on ARM): one pass over the bytes for all literals.

In:  literals; blocks of whole lines. Out: marks, equal to those of core's Plain.
Not: regular expressions; core tries those on the few lines that have a literal.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import hyperscan

from triage.core.log.finder import Literals, Mark, Marker


class Database:
    """A Finder; raises ImportError where its package is missing or its library does not load."""

    def __init__(self, literals: Literals) -> None:
        self._database: hyperscan.Database | None = None
        if literals.texts:
            self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
            self._database.compile(
                expressions=list(literals.texts),
                ids=list(range(len(literals.texts))),
                elements=len(literals.texts),
                flags=0,
                literal=True,
            )
        self._marker = Marker(literals)
        self._one = threading.Lock()  # launches at the same time share scratch space and marker

    def close(self) -> None:
        """Free the database and its scratch space."""
        self._database = None

    def scan(self, block: bytes, start: int, stop: int) -> tuple[list[Mark], int]:
        """See core's Finder."""
        marker = self._marker
        with self._one:
            marker.begin(block, start, stop)
            if self._database is not None:
                whole = not start and stop == len(block)
                data: Any = block if whole else memoryview(block)[start:stop]
                with suppress(hyperscan.ScanTerminated):  # Marker asks for it
                    self._database.scan(data, marker.found)
            return marker.marks, marker.resume

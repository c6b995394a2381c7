"""What a launcher wants to know of a log while it is being written.

In:  raw bytes as they arrive. Out: the last phase, the ready line, the fatal line, silent ranks.
Not: naming the cause (log/diagnose.py, once the launch has ended).
"""

from __future__ import annotations

from typing import Protocol


class Watcher(Protocol):
    """Reads a log as it grows; line numbers count from 1, 0 means "not seen"."""

    phase: str  # of the last landmark that any rank passed; "unknown" before the first
    ready_line: int  # the engine's own line that it is ready; no proof
    fatal_line: int  # the first line after which this launch cannot come up

    def feed(self, raw: bytes) -> None:
        """Take the next bytes; a chunk may end anywhere, also inside a line."""

    def unheard(self) -> frozenset[str]:
        """Tags of the ranks that were on their way, and have not said that they failed."""

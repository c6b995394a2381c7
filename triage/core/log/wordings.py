"""Texts of which one has to be in a line.

In:  texts, and patterns with what is in all that they match. Out: Wordings.
Not: what the lines mean (endings.py, no_start.py).
"""

from __future__ import annotations

from triage.core.regex import regex

# A plain text, or a pattern and texts of which one is in all that it matches.
Row = str | tuple[str, ...]


class Wordings:
    """Whether any of some rows is in a text; a pattern is tried only if its texts allow it."""

    def __init__(self, *rows: Row) -> None:
        self.rows = rows
        self._tests = [
            row if isinstance(row, str) else regex(row[0], needs=row[1:]).search for row in rows
        ]

    def search(self, text: str) -> bool:
        """Whether a row is in the text."""
        for test in self._tests:
            if test in text if isinstance(test, str) else test(text) is not None:
                return True
        return False

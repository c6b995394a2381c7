"""The words that one word of a shell text becomes.

In:  its pieces in order: quoted text, values of variables, arrays.
Out: finished words, parted where a shell parts them.
Not: finding the pieces and expanding variables (shell.py).

Source: POSIX.1-2017, Shell Command Language, 2.6.5 (field splitting).
"""

from __future__ import annotations

from triage.command.source import Word


class Fields:
    """The words that one word of the text becomes; a finished one is (value, unresolved)."""

    def __init__(self) -> None:
        self.done: list[Word | tuple[str, bool]] = []
        self._parts: list[str] = []
        self._seen = self._open = False

    def add(self, text: str, *, is_open: bool = False) -> None:
        """Text that belongs to the word being read."""
        self._parts.append(text)
        self._seen = True
        self._open |= is_open

    def split(self, value: str) -> None:
        """An unquoted variable: its blanks part words."""
        if value[:1].isspace():
            self.finish()
        for number, piece in enumerate(value.split()):
            if number:
                self.finish()
            self.add(piece)
        if value[-1:].isspace():
            self.finish()

    def spread(self, words: list[Word]) -> None:
        """The items of an array, each with its own place."""
        self.finish()
        self.done += words

    def finish(self) -> None:
        """The word being read ends here."""
        if self._seen:
            self.done.append(("".join(self._parts), self._open))
        self._parts = []
        self._seen = self._open = False

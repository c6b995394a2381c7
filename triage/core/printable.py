"""Text of logs and answers made safe to print: a terminal would obey some of its characters.

In:  text that is not trusted. Out: the same text with those characters replaced.
Not: escaping markup (triage.render.markdown) or hiding secrets (redact.py).
"""

from __future__ import annotations

from triage.core.regex import regex

# A terminal would obey these, and a reader cannot see them; tab and newline stay.
_CONTROL = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def visible(text: str) -> str:
    """The text with control and direction characters replaced by the replacement character."""
    if text.isprintable():
        return text
    return _CONTROL.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))

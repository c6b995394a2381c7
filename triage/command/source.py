"""Where a server command stands in a text, to the character, so that an edit touches nothing else.

In:  what the readers of one form (shell, unit) found.
Out: Word, EnvSite, Layer, Located: the parts of a command with their offsets.
Not: what the flags mean (triage.core.flags) and how an edit is made (write.py).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

NAME = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)=", re.ASCII)


@dataclass(frozen=True, slots=True)
class Word:
    """A word as the program gets it, and the characters of the text that stand for it.

    Words that come from one unquoted variable share their place. `open`: the
    value holds something that only a shell on the user's machine can resolve.
    """

    value: str
    start: int
    end: int
    open: bool = False


@dataclass(frozen=True, slots=True)
class EnvSite:
    """One `NAME=VALUE` in the text.

    The assignment stands at `at` to `end`, after `lead` (such as `--env=`), and
    goes away with everything from `start`. `holder` is the statement or the line
    that falls too when nothing else is left in it.
    """

    name: str
    value: str
    start: int
    at: int
    end: int
    lead: str = ""
    holder: tuple[int, int] | None = None
    open: bool = False


@dataclass(frozen=True, slots=True)
class Syntax:
    """How a word and an assignment are written in one form."""

    quote: Callable[[str], str]
    assignment: Callable[[str, str, str], str]  # lead, name, value


def quote_unit(word: str) -> str:
    """A word of a systemd unit: `%` and `$` doubled, quoted where it must be.

    Source: systemd.service(5), "Command lines"; systemd.syntax(7), "Quoting".
    """
    text = word.replace("\\", "\\\\").replace("%", "%%").replace("$", "$$")
    for char, escape in (("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r"), ('"', '\\"')):
        text = text.replace(char, escape)
    text = re.sub(r"[\x01-\x1f\x7f]", lambda m: f"\\x{ord(m[0]):02x}", text)
    plain = re.fullmatch(r"[^\s'\";#]+", text) and text == word
    return text if plain else f'"{text}"'


def unit_environment(name: str, value: str) -> str:
    """One word of an `Environment=` line; a dollar has no meaning there."""
    return quote_unit(f"{name}={value}").replace("$$", "$")


SHELL = Syntax(shlex.quote, lambda lead, name, value: f"{lead}{name}={shlex.quote(value)}")
UNIT = Syntax(quote_unit, lambda lead, name, value: quote_unit(f"{lead}{name}={value}"))


@dataclass(slots=True)
class Layer:
    """One text: the file itself, or the string that it hands to `sh -c`.

    `link` is the word of this layer that holds the next layer's text.
    `env_as` says how a new variable is added at `env_at`.
    """

    text: str
    syntax: Syntax
    sites: list[EnvSite] = field(default_factory=list)
    link: Word | None = None
    env_at: int = 0
    env_as: Literal["prefix", "docker", "unit", "manifest"] = "prefix"


@dataclass(slots=True)
class Located:
    """A server command found in a text.

    `words` are all words after the program, in the last layer. `positional` is
    the model of `sglang serve MODEL`. `unresolved` holds what only a shell could
    know besides the words: which part of the command, and how it is written.
    """

    form: str
    layers: list[Layer]
    program: tuple[str, ...]
    program_end: int
    words: tuple[Word, ...]
    wrapper: tuple[str, ...] = ()
    positional: Word | None = None
    cwd: str = ""
    env: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unresolved: list[tuple[str, str]] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Keep a remark, once."""
        if text not in self.notes:
            self.notes.append(text)


def values(words: Sequence[Word]) -> tuple[str, ...]:
    """The words as a program gets them."""
    return tuple(word.value for word in words)


def line_of(text: str, offset: int) -> int:
    """The number of the line at an offset, from 1."""
    return text.count("\n", 0, offset) + 1

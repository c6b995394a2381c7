"""Server arguments as the simulated engine takes them: argparse, as SGLang does.

In:  the words after `--` and the landscape's flags.
Out: what was set, by canonical name, and the `server_args` mapping with defaults.
Not: deciding how the launch ends (landscape.py).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from triage.core.config import Value
from triage.replay.landscape import KnownFlag


class Refused(Exception):  # noqa: N818  the command line was refused, as argparse does
    """The command line is wrong; `text` is the usage and the error line."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


class _Parser(argparse.ArgumentParser):
    # argparse writes to the streams itself; the caller marks each line instead.
    def error(self, message: str) -> NoReturn:
        raise Refused(f"{self.format_usage()}{self.prog}: error: {message}", 2)

    def print_help(self, file: object = None) -> None:
        del file
        raise Refused(self.format_help(), 0)


def parse_arguments(words: Sequence[str], flags: Sequence[KnownFlag]) -> dict[str, Value]:
    """The flags that the words set, by canonical name.

    Raises:
        Refused: an unknown or ambiguous option, a bad choice or type; exit code 2.
    """
    parser = _Parser(prog="sglang serve")
    for known in flags:
        _add(parser, known)
    found = vars(parser.parse_args(list(words)))
    return {name: _value(given) for name, given in found.items()}


def server_args(set_: dict[str, Value], flags: Sequence[KnownFlag]) -> dict[str, object]:
    """All options by attribute name, unset ones with their default, as SGLang dumps them."""
    dump: dict[str, object] = {}
    for known in flags:
        value: object = set_.get(known.flag, known.default)
        if known.kind == "switch":
            value = bool(value)
        elif isinstance(value, tuple):
            value = list(value)
        elif isinstance(value, str):
            value = _number(value)
        dump[known.flag.replace("-", "_")] = value
    return dump


def whole(set_: dict[str, Value], flags: Sequence[KnownFlag], name: str, default: int) -> int:
    """A flag's value as an integer; the landscape's default, else ours, if it is not set."""
    known = {k.flag: k.default for k in flags}.get(name)
    value = set_.get(name, default if known is None else str(known))
    return int(str(value))


def _add(parser: argparse.ArgumentParser, known: KnownFlag) -> None:
    names = [f"--{name}" for name in (known.flag, *known.aliases)]
    # SUPPRESS: what the user did not set stays absent.
    options: dict[str, Any] = {"dest": known.flag, "default": argparse.SUPPRESS}
    if known.kind == "switch":
        parser.add_argument(*names, action="store_true", **options)
        return
    kind: Callable[[str], object] = int if known.kind == "int" else str
    if known.kind == "list":
        options["nargs"] = "+"
    parser.add_argument(
        *names, type=kind, choices=known.choices or None, required=known.required, **options
    )


def _value(given: object) -> Value:
    if isinstance(given, list):
        return tuple(str(part) for part in given)
    return given if isinstance(given, bool) else str(given)


def _number(text: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

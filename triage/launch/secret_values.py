"""The secrets that a launch is given: variables, options, a unit's text, a container's words.

In:  a LaunchSpec, our environment. Out: the values, as far as their names say that they are secret.
Not: hiding them (hiding.py).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from triage.core.launch import Container, Job, LaunchSpec, Unit
from triage.core.redact import SECRET_NAME

# What is shorter, or such a word, would be hidden where it says something else.
_SHORTEST = 6
_WORDS = frozenset(["password", "secret", "default", "changeme", "dummy", "sk-none"])
_SET = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>.*)", re.DOTALL)
_OPTION = re.compile(r"-[\w-]*=?")
_UNIT_LINE = re.compile(
    r"^[ \t]*(?P<key>Environment|EnvironmentFile)[ \t]*=(?P<value>(?:[^\n]*\\\n)*[^\n]*)",
    re.MULTILINE,
)


def secret_values(spec: LaunchSpec, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Every value that is secret by its name, wherever the launch has it from."""
    found = [*_of_pairs(environ.items()), *_of_pairs(spec.env), *_of_words(spec.argv)]
    match spec.place:
        case Unit(text=text):
            found += _of_unit(text)
        case Container(run=run):
            found += _of_words(run)
            for word, following in pairwise((*run, "")):
                option, _, value = word.partition("=")
                if option == "--env-file":
                    found += _of_file(value or following)
        case Job(options=options):
            found += _of_words(options)
        case _:
            pass
    return tuple(sorted({v for v in found if len(v) >= _SHORTEST and v.lower() not in _WORDS}))


def _of_pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (value for name, value in pairs if SECRET_NAME.search(name))


def _of_words(words: Sequence[str]) -> Iterator[str]:
    for word, following in pairwise((*words, "")):
        if word.startswith("-") and "=" not in word and SECRET_NAME.search(word):
            yield following
        rest = _OPTION.sub("", word, count=1) if word.startswith("-") else word
        for part in (rest, *rest.split(",")):  # as in --env=NAME=VALUE, --export=ALL,NAME=VALUE
            if (match := _SET.fullmatch(part)) and SECRET_NAME.search(match["name"]):
                yield match["value"]
        if word.startswith("--") and SECRET_NAME.search(word.partition("=")[0]):
            yield word.partition("=")[2]


def _of_unit(text: str) -> Iterator[str]:
    for line in _UNIT_LINE.finditer(text):
        value = line["value"].replace("\\\n", " ")
        if line["key"] == "Environment":
            yield from _of_words(_split(value))
        else:
            yield from _of_file(value.strip().removeprefix("-"))
    for written in text.splitlines():
        if written.lstrip().startswith("Exec"):
            yield from _of_words(_split(written.partition("=")[2]))


def _of_file(path: str) -> Iterator[str]:
    """The values of a file of variables, if it is one and may be read."""
    try:
        file = Path(path).expanduser()
        text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    except (OSError, ValueError, RuntimeError):
        return
    for line in text.splitlines():
        yield from _of_words(_split(line.strip().removeprefix("export ")))


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()

"""Knowledge as JSON: what the package ships, read without a YAML parser.

In:  `index.json`; `flags.json`. Out: causes; a FlagTable.
Not: where they come from (loader.py) or how the files are written (index.py).

Most of what they hold a log never asks for, so that only their heads are read at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from itertools import accumulate

from triage.core.typed import Any, cast

try:  # what `json.loads` ends in; the rest of that module takes longer than an index
    from _json import make_scanner
except ImportError:  # another Python than CPython
    from json.scanner import make_scanner

from triage.core.causes import Cause, Disposition, Origin, Remedy, Role, Severity
from triage.core.flags import FlagTable
from triage.core.flags import lazy_table_of as flag_table_of
from triage.core.log.signatures import Causes, Made, Pattern, Table
from triage.errors import UsageError

_HERE = os.path.dirname(__file__)  # noqa: PTH120  pathlib takes 3 ms to import
INDEX = f"{_HERE}/index.json"
CAUSES = f"{_HERE}/causes"
FLAGS = f"{_HERE}/flags.json"
_HEAD = 1 << 17  # bytes that hold the head of the index, or are read anew


class _Usual:
    """How `json` reads by default."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float
    memo: dict[str, str] = {}  # noqa: RUF012  what `json` calls it


_scan: Callable[[str, int], tuple[Any, int]] = make_scanner(cast("Any", _Usual()))


def _read(raw: bytes) -> Any:
    """The value at the start of these bytes."""
    return _scan(raw.decode(), 0)[0]


def _head(raw: bytes, end: int) -> Any:
    """The value of the first line, which goes on behind it."""
    text = str(memoryview(raw)[:end], "utf-8")
    text += "[]}"  # in place: a copy of a hundred kilobytes costs as much as its pages
    return _scan(text, 0)[0]


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()


@cache
def load_causes() -> Causes:
    """All causes that the package knows, by id, read once a process."""
    file = os.open(INDEX, os.O_RDONLY)  # for good: most of it is read later, or never
    return decode(lambda start, size: os.pread(file, size, start))


def decode(part: Callable[[int, int], bytes]) -> Causes:
    """The causes of an index; the inverse of `encode`. Each is read when it is asked for.

    `part` gives what is there from an offset on, and how many bytes of it.
    """
    raw, size = part(0, _HEAD), _HEAD
    while b"\n" not in raw and len(raw) == size:
        raw, size = part(0, 2 * size), 2 * size
    end = raw.index(b"\n")
    head = _head(raw, end)
    lengths = head["lengths"]  # of the lines that follow
    starts = [*accumulate(lengths, initial=end + 1)]

    def line(number: int) -> Any:
        return _read(part(starts[number], lengths[number]))

    @cache
    def clues() -> Any:
        return line(0)  # a short log is searched without them

    table = Table(
        clues=Made(head["clued"], lambda index: clues()[index]),
        patterns=Made(len(head["uses"]), lambda index: _pattern(*line(1 + index))),
        **{name: head[name] for name in TABLE},
    )
    first = len(table.patterns) + 2  # of the causes; a line stands before them
    return Causes(head["count"], lambda index: _cause(line(first + index)), table)


# What the head has of the table; the rest of it stands in lines of its own.
TABLE = ("texts", "implied", "words", "parts", "owners", "near", "frequent", "uses",
          "bare", "absent", "doubts", "harmless")  # fmt: skip


def _pattern(cause: int, use: int, pattern: str, text: str | None, needs: list[str]) -> Pattern:
    return Pattern(cause, use, pattern, text, tuple(needs))


def load_flag_table(version: str = "0.5.23") -> FlagTable:
    """The flags of one SGLang version; raises UsageError for a version without a table."""
    stored = _flags()
    tables = stored["tables"]
    if version not in tables:
        known = ", ".join(tables)
        raise UsageError(
            f"there is no flag table of sglang {version}; known: {known}",
            hint=f"ls {FLAGS.removesuffix('.json')}",
        )
    return flag_table_of(tables[version], stored["successors"])


def flag_versions() -> tuple[str, ...]:
    """The SGLang versions of which there is a flag table."""
    return tuple(_flags()["tables"])


def flag_successors() -> dict[str, str]:
    """Old flag -> what to write now, "" where nothing took its place."""
    found: dict[str, str] = _flags()["successors"]
    return found


def _flags() -> Any:
    return _read(_bytes(FLAGS))


def _cause(entry: dict[str, Any]) -> Cause:
    entry["role"] = Role(entry["role"])
    if "severity" in entry:
        entry["severity"] = Severity(entry["severity"])
    entry["remedies"] = tuple(_remedy(remedy) for remedy in entry.get("remedies", ()))
    entry["origins"] = tuple(_origin(origin) for origin in entry.get("origins", ()))
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()
    }
    return Cause(**values)


def _remedy(entry: dict[str, Any]) -> Remedy:
    entry["disposition"] = Disposition(entry["disposition"])
    for name in ("set_flags", "set_env"):
        entry[name] = tuple((key, value) for key, value in entry.get(name, ()))
    for name in ("unset", "unset_env", "needs", "span"):
        entry[name] = tuple(entry.get(name, ()))
    return Remedy(**entry)


def _origin(entry: dict[str, Any]) -> Origin:
    return Origin(**{**entry, "sources": tuple(entry["sources"])})

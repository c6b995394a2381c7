"""Compiled patterns, kept from run to run beside the compiled modules, as Python keeps those.

In:  patterns of triage. Out: what `re.compile` makes of them, sooner.
Not: which patterns there are, or matching.

To compile the patterns that a short log needs takes as long as to read it. The file holds what
`re` hands to its engine. It is of use to that one build of Python; without it, and where the
engine does not take what it says, `re` compiles as ever.
"""

from __future__ import annotations

import marshal
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module

from triage.core.regex import compile_with
from triage.core.typed import Any

try:
    _sre: Any = import_module("_sre")  # the engine of `re`
except ImportError:  # another Python than CPython
    _sre = None

_MOST = 512  # patterns: few runs need a tenth of them, and all are read
_WORD = 4  # bytes of the engine's codes
_Key = tuple[str | bytes, int]
# What a damaged file, or an engine that is not the one that is meant, may raise.
_UNFIT = (
    *(AttributeError, RuntimeError, TypeError, ValueError),
    *(OverflowError, EOFError, LookupError, MemoryError),
)


@contextmanager
def kept_patterns(file: str = "") -> Iterator[None]:
    """Meanwhile patterns are taken from the file; those that it lacks are added at the end."""
    patterns = _Patterns(file or _beside_modules())
    compile_with(patterns.compile)
    try:
        yield
    finally:
        compile_with(re.compile)
        patterns.save()


def _beside_modules() -> str:
    """The file, or "" where Python keeps nothing either."""
    spec = globals()["__spec__"]
    cached = spec.cached if spec is not None else None
    return cached.removesuffix("pyc") + "patterns" if cached and _sre is not None else ""


class _Patterns:
    """The patterns of a file, which is read when the first is asked for."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._known: dict[_Key, bytes] | None = None
        self._new: dict[_Key, re.Pattern[Any]] = {}

    def compile(self, pattern: Any, flags: int = 0) -> re.Pattern[Any]:
        """As `re.compile`."""
        if self._known is None:
            self._known = _read(self._file) if self._file else {}
        key = pattern, int(flags)
        if code := self._known.get(key):
            try:
                return _decoded(pattern, code)
            except _UNFIT:
                del self._known[key]
        made = re.compile(pattern, flags)
        if key not in self._known:
            self._new[key] = made
        return made

    def save(self) -> None:
        """Write those that are new, if Python writes the like; whoever cannot leaves it."""
        known = self._known or {}
        if not self._new or not self._file or sys.dont_write_bytecode:
            return
        if len(known) + len(self._new) > _MOST:
            known = {}  # most are of an earlier triage, or of a folder that is not read any more
        known |= {key: _encoded(*key, made) for key, made in [*self._new.items()][:_MOST]}
        part = f"{self._file}.{os.getpid()}"
        try:
            with open(part, "wb") as file:  # noqa: PTH123  pathlib takes 3 ms to import
                file.write(marshal.dumps((_build(), known)))
            os.replace(part, self._file)  # noqa: PTH105  a reader sees all of it or nothing
        except OSError:
            with suppress(OSError):
                os.unlink(part)  # noqa: PTH108


def _build() -> str:
    """What the codes are good for."""
    return f"{sys.version} {_sre.MAGIC} {_sre.CODESIZE} {sys.byteorder}"


def _read(file: str) -> dict[_Key, bytes]:
    try:
        with open(file, "rb") as opened:  # noqa: PTH123
            build, known = marshal.loads(opened.read())  # noqa: S302  as trusted as the modules
    except (OSError, *_UNFIT):
        return {}
    return known if build == _build() and isinstance(known, dict) else {}


def _decoded(pattern: Any, code: bytes) -> re.Pattern[Any]:
    flags, groups, names, words = marshal.loads(code)  # noqa: S302
    numbered: list[str | None] = [None] * (groups + 1)
    for name, number in names.items():
        numbered[number] = name
    codes = memoryview(words).cast("I").tolist()
    made: re.Pattern[Any] = _sre.compile(pattern, flags, codes, groups, names, tuple(numbered))
    return made


def _encoded(pattern: Any, flags: int, made: re.Pattern[Any]) -> bytes:
    """The pattern for the file; empty if this Python does not get the same back from it."""
    try:
        compiler, parser = re._compiler, re._parser  # type: ignore[attr-defined]
        codes = compiler._code(parser.parse(pattern, flags), flags)
        words = b"".join(number.to_bytes(_WORD, sys.byteorder) for number in codes)
        code = marshal.dumps((made.flags, made.groups, dict(made.groupindex), words))
        return code if _decoded(pattern, code) == made else b""
    except _UNFIT:
        return b""

"""Regular expressions that are compiled when they are first needed.

In:  a pattern, and texts without which it cannot match. Out: what behaves like `re.compile` of it.
Not: matching anything itself.

A log of the usual size needs a tenth of the patterns that triage has, and compiling
all of them costs more than reading it. Looking for a plain text costs next to nothing: a
pattern that names such texts is not even compiled while none of them comes along.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from triage.core.typed import Any, AnyStr, Generic, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")


def regex(pattern: AnyStr, flags: int = 0, *, needs: Sequence[AnyStr] = ()) -> re.Pattern[AnyStr]:
    """The pattern, compiled at its first use; a mistake in it is raised then.

    Args:
        pattern: As `re.compile` takes it.
        flags: The same.
        needs: Texts of which one is in everything that matches; without one nothing is tried.
    """
    if needs:
        return cast("re.Pattern[AnyStr]", _Guarded[AnyStr](pattern, flags, needs))
    return cast("re.Pattern[AnyStr]", _Regex(pattern, flags))


def finds(pattern: str, text: str) -> bool:
    """Whether the pattern is somewhere in the text; one that is plain text is not compiled."""
    plain = _plain(pattern)
    return compiled(pattern).search(text) is not None if plain is None else plain in text


@lru_cache(maxsize=4096)
def _plain(pattern: str) -> str | None:
    """The text that the pattern is, None if it is more."""
    parts = pattern.split("\\.")
    return ".".join(parts) if _SPECIAL.isdisjoint("".join(parts)) else None


@lru_cache(maxsize=4096)  # that of `re` is too small for the patterns of all causes
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, compiled once."""
    return _Compiler.compile(pattern, 0)


class _Compiler:
    """What compiles."""

    compile: Callable[[Any, int], re.Pattern[Any]] = re.compile


def compile_with(how: Callable[[Any, int], re.Pattern[Any]]) -> None:
    """From here on this compiles what is not compiled yet; it must do as `re.compile` does."""
    _Compiler.compile = staticmethod(how)


_SPECIAL = frozenset(".^$*+?{}[]\\|()")


class _Regex:
    """Becomes the compiled pattern, method by method, when the first is asked for."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = _Compiler.compile(self.pattern, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


class _Guarded(Generic[AnyStr]):
    """A pattern that is tried only on texts with one of those that it needs."""

    def __init__(self, pattern: AnyStr, flags: int, needs: Sequence[AnyStr]) -> None:
        self.pattern: AnyStr = pattern
        self.needs: tuple[AnyStr, ...] = tuple(needs)
        self._compiled = _Regex(pattern, flags)

    def _may(self, text: AnyStr) -> bool:
        for one in self.needs:  # noqa: SIM110  a generator would cost more than the search
            if one in text:
                return True
        return False

    def search(self, text: AnyStr, *at: int) -> re.Match[AnyStr] | None:
        return self._compiled.search(text, *at) if self._may(text) else None

    def match(self, text: AnyStr, *at: int) -> re.Match[AnyStr] | None:
        return self._compiled.match(text, *at) if self._may(text) else None

    def fullmatch(self, text: AnyStr, *at: int) -> re.Match[AnyStr] | None:
        return self._compiled.fullmatch(text, *at) if self._may(text) else None

    def finditer(self, text: AnyStr, *at: int) -> Iterator[re.Match[AnyStr]]:
        return self._compiled.finditer(text, *at) if self._may(text) else iter(())

    def findall(self, text: AnyStr, *at: int) -> list[Any]:
        return self._compiled.findall(text, *at) if self._may(text) else []

    def sub(
        self, new: AnyStr | Callable[[re.Match[AnyStr]], AnyStr], text: AnyStr, count: int = 0
    ) -> AnyStr:
        return self._compiled.sub(new, text, count) if self._may(text) else text

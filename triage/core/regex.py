"""Regular expressions that are compiled when they are first used.

In:  a pattern. Out: what behaves like `re.compile` of it.
Not: matching anything itself.

A log of the usual size needs a third of the patterns that triage has, and compiling
all of them costs more than reading it.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The pattern, compiled at its first use; a mistake in it is raised then."""
    return cast("re.Pattern[AnyStr]", _Regex(pattern, flags))


class _Regex:
    """Becomes the compiled pattern, method by method, when the first is asked for."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)

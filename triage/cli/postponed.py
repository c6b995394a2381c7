"""Lets a module of the standard library be imported at once, and run when it is first used.

In:  its name. Out: an entry of `sys.modules`.
Not: modules of ours; those are imported where they are used.

`importlib.util.LazyLoader` would do, but to import what it made is to use it.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec


def postpone(name: str) -> None:
    """Let `import name` cost nothing; the first thread that asks the module for something pays."""
    spec = None if name in sys.modules else PathFinder.find_spec(name)
    if spec is not None and spec.loader is not None:
        sys.modules[name] = _Postponed(spec)


class _Postponed(ModuleType):
    """A module that has not run yet."""

    def __init__(self, spec: ModuleSpec) -> None:
        super().__init__(spec.name)
        self.__spec__, self.__loader__ = spec, spec.loader
        self.__file__, self.__package__ = spec.origin, spec.parent

    def __getattr__(self, name: str) -> object:
        """Run it, and be an ordinary module from then on."""
        self.__class__ = ModuleType  # type: ignore[assignment]
        spec = self.__spec__
        assert spec is not None  # noqa: S101  as it was made
        assert spec.loader is not None  # noqa: S101
        spec.loader.exec_module(self)
        return getattr(self, name)

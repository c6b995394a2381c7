"""Lets modules of the standard library be imported at once, and run when they are first used.

In:  their names. Out: entries of `sys.modules`.
Not: modules of ours; those are imported where they are used.

`importlib.util.LazyLoader` would do, but to import what it made is to use it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType

from triage.core.typed import TYPE_CHECKING, Any

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


@contextmanager
def stand_ins(**names: tuple[str, ...] | dict[str, object]) -> Iterator[None]:
    """Let what is imported meanwhile have these names of modules without running those.

    A module is given by names, or with the true things behind them where they are known.
    Whoever takes one keeps a stand-in, which fetches the true thing when it is called, asked
    for something or compared with. Who wants another name gets it from the module itself.
    """
    made = [name for name in names if name not in sys.modules]
    for name in made:
        sys.modules[name] = _Stub(name, names[name])
    try:
        yield
    finally:
        for name in made:
            _uncover(name)


class _Stub(ModuleType):
    """A module with a few names."""

    def __init__(self, name: str, names: tuple[str, ...] | dict[str, object]) -> None:
        super().__init__(name)
        for one in names:
            setattr(self, one, names[one] if isinstance(names, dict) else _StandIn(name, one))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_true(self.__name__), name)


class _StandIn:
    """A class or function of a module that is not imported before it is needed."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def _fetch(self) -> Any:
        return getattr(_true(self._module), self._name)

    def __call__(self, *args: Any, **given: Any) -> Any:
        return self._fetch()(*args, **given)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self._fetch())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # `typing` looks for those of generic types
            raise AttributeError(name)
        return getattr(self._fetch(), name)


def _true(name: str) -> ModuleType:
    _uncover(name)
    return import_module(name)


def _uncover(name: str) -> None:
    """From here on, to import the module is to import it."""
    if isinstance(sys.modules.get(name), _Stub):
        del sys.modules[name]

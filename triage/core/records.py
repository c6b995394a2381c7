"""Data classes that cost nothing until they are used.

In:  a class, as `dataclasses.dataclass` takes it. Out: the same class, with its methods to come.
Not: anything that `dataclasses` does not do: it writes the methods, at their first call.

Writing and compiling the methods of a data class takes a third of a millisecond. A
command that classifies a log knows fifty of them, needs the `__init__` of twenty and the
rest of five, and would spend a third of its time on the others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        *,
        frozen: bool = False,
        slots: bool = False,
        kw_only: bool = False,
        eq: bool = True,
        order: bool = False,
    ) -> Any:
        """`dataclasses.dataclass`; done later where nothing but the usual is asked for."""
        options = {"frozen": frozen, "kw_only": kw_only}

        def make(cls: type) -> type:
            if not slots or order or not eq or cls.__bases__ != (object,):
                return dataclasses.dataclass(slots=slots, eq=eq, order=order, **options)(cls)
            return _later(cls, options)

        return make


# What `dataclasses` writes beside `__init__`.
_REST = ("__repr__", "__eq__", "__hash__")
_ABOUT = ("__dataclass_fields__", "__dataclass_params__")


def _later(cls: type, options: dict[str, bool]) -> type:
    """The class with slots, and with methods that complete it when they are first called."""
    own = dict(cls.__dict__)
    names = tuple(own.get("__annotations__", ()))
    space = {k: v for k, v in own.items() if k not in (*names, "__dict__", "__weakref__")}
    space["__slots__"] = names
    space["__match_args__"] = () if options["kw_only"] else names
    if options["frozen"]:
        space |= {"__setattr__": _refuse, "__delattr__": _refuse}
        space |= {"__getstate__": _state, "__setstate__": _restore}
    elif "__eq__" not in own:
        space.setdefault("__hash__", None)
    made = type(cls)(cls.__name__, cls.__bases__, space)
    made.__qualname__ = cls.__qualname__

    def complete(name: str) -> Any:
        """Let `dataclasses` write this method, or all but `__init__`, and take it over."""
        init = name == "__init__"
        shadow = type(cls.__name__, (), {k: v for k, v in own.items() if k not in _OF_A_CLASS})
        shadow.__qualname__ = cls.__qualname__
        dataclasses.dataclass(init=init, repr=not init, eq=not init, **options)(shadow)
        for known in (name,) if init else (*_REST, *_ABOUT):
            if known in shadow.__dict__ and known not in own:
                setattr(made, known, shadow.__dict__[known])
        return getattr(made, name)

    for name in ("__init__", *_REST):
        if name not in space:
            setattr(made, name, _first_call(complete, name))
    for name in _ABOUT:
        setattr(made, name, _FirstLook(complete, name))
    return made


_OF_A_CLASS = ("__dict__", "__weakref__", "__slots__")


def _first_call(complete: Callable[[str], Any], name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **given: Any) -> Any:
        return complete(name)(self, *args, **given)

    method.__name__ = name
    return method


class _FirstLook:
    """What `dataclasses.fields`, `replace` and `asdict` ask of a class."""

    def __init__(self, complete: Callable[[str], Any], name: str) -> None:
        self._complete = complete
        self._name = name

    def __get__(self, _instance: object, _owner: type) -> Any:
        return self._complete(self._name)


def _refuse(self: object, name: str, *_value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__slots__]


def _restore(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__slots__, state, strict=True):
        object.__setattr__(self, name, value)

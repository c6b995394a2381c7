"""What annotations name, for modules that every command imports: `typing` itself takes 2 ms.

In:  nothing. Out: names of `typing`; to a type checker they are the same.
Not: types. Nothing is behind most of these names when triage runs, and nobody asks.

A module that a short command does without may as well take them from `typing`.
"""

from __future__ import annotations

from collections import namedtuple

__all__ = [
    "IO", "TYPE_CHECKING", "Any", "AnyStr", "Callable", "Generic", "Literal", "NamedTuple",
    "NoReturn", "Protocol", "SupportsFloat", "SupportsIndex", "SupportsInt", "TextIO", "TypeVar",
    "TypedDict", "cast", "overload",
]  # fmt: skip

TYPE_CHECKING = False  # a type checker takes the name for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import (
        IO,
        Any,
        AnyStr,
        Generic,
        Literal,
        NamedTuple,
        NoReturn,
        Protocol,
        SupportsFloat,
        SupportsIndex,
        SupportsInt,
        TextIO,
        TypedDict,
        TypeVar,
        cast,
        overload,
    )
else:

    class _Type:
        """Some type; what is made of it is some type, too."""

        def __call__(self, *_: object, **__: object) -> _Type:
            return self

        def __getitem__(self, _: object) -> _Type:
            return self

        __or__ = __ror__ = __getitem__

    IO = Any = AnyStr = Callable = Literal = NoReturn = TextIO = TypeVar = _Type()
    SupportsFloat = SupportsIndex = SupportsInt = Any

    class Generic:
        """A base that is as good with parameters as without."""

        __slots__ = ()

        def __class_getitem__(cls, _: object) -> type:
            return cls

    class Protocol(Generic):
        """A base that says nothing."""

        __slots__ = ()

    class TypedDict(dict):
        """A dictionary."""

        def __init_subclass__(cls, **_: object) -> None:
            """Any options are fine."""

    class _NamedTuples(type):
        """Makes named tuples."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, object]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = body.pop("__annotations__")
            defaults = [body.pop(field) for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults)
            for key, value in body.items():
                setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_NamedTuples):
        """A base whose classes are named tuples of their annotations."""

    def cast(_kind: object, value: object) -> object:
        """The value."""
        return value

    def overload(function: object) -> object:
        """The function; the last of the name counts."""
        return function

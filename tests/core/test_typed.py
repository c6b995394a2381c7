"""What stands in for `typing` is as good as it when triage runs."""

from __future__ import annotations

import pickle
import typing

import pytest

from triage.core import typed
from triage.core.typed import Any, Generic, NamedTuple, Protocol, TypeVar, cast, overload

T = TypeVar("T")


class Point(NamedTuple):
    """Two numbers."""

    x: int
    y: int = 2

    def sum(self) -> int:
        """Both."""
        return self.x + self.y


class Stack(Generic[T]):
    """Of one sort."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[T] = []


class Sized(Protocol):
    """Has a size."""

    def size(self) -> int:
        """How much."""


@overload
def twice(value: int) -> int: ...
@overload
def twice(value: str) -> str: ...
def twice(value: Any) -> Any:
    """The value two times."""
    return value * 2


def test_a_named_tuple_is_one() -> None:
    point = Point(3)
    assert point == (3, 2)
    assert (point.sum(), point._replace(y=5), Point._fields) == (5, (3, 5), ("x", "y"))
    assert (Point.__doc__, Point.__module__) == ("Two numbers.", __name__)
    assert pickle.loads(pickle.dumps(point)) == point
    with pytest.raises(TypeError):
        Point()  # type: ignore[call-arg]


def test_bases_with_parameters_add_nothing() -> None:
    stack = Stack[int]()
    stack.items.append(1)
    assert not hasattr(stack, "__dict__")
    assert type(stack) is Stack

    class Box(Sized):
        def size(self) -> int:
            return 1

    assert Box().size() == 1


def test_what_only_annotations_say_does_nothing() -> None:
    assert cast("Any", "as it is") == "as it is"
    assert (twice(2), twice("a")) == (4, "aa")
    made: Any = typed.Literal["a"] | typed.Any | typed.IO[bytes]
    assert isinstance(made, type(typed.TypeVar))


def test_every_name_is_one_of_typing() -> None:
    assert {*typed.__all__} <= {*typing.__all__, "IO", "TextIO"}

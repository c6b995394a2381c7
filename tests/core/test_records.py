"""Data classes that are completed late behave as those that are complete at once."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from triage.core.records import _OFTEN, dataclass, field, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Two numbers and a list."""

    x: int
    y: int = 2
    more: tuple[int, ...] = field(default_factory=tuple)


@dataclass(slots=True)
class Box:
    """By position."""

    name: str
    items: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Node:
    """Equal to itself alone."""

    name: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """With an order."""

    major: int
    minor: int = 0


@dataclass(frozen=True)
class Open:
    """Without slots: done at once."""

    items: list[int] = field(default_factory=list)


def test_defaults_are_filled_in_and_made_anew() -> None:
    assert (Point(x=1).y, Point(x=1).more) == (2, ())
    one, other = Box("a"), Box(name="b")
    one.items.append(1)
    assert (one.items, other.items, Open().items) == ([1], [], [])


@pytest.mark.parametrize(
    "wrong",
    [
        Point,
        lambda: Point(1),  # type: ignore[call-arg]
        lambda: Point(x=1, z=3),  # type: ignore[call-arg]
        lambda: Box("a", name="b"),  # type: ignore[misc]
        lambda: Box("a", [], 3),  # type: ignore[call-arg]
    ],
)
def test_wrong_arguments_are_refused_in_the_usual_words(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(TypeError, match=r"__init__\(\)"):
        wrong()


def test_the_first_values_and_the_later_ones_are_alike() -> None:
    made = [Version(3, 1) for _ in range(_OFTEN + 5)]
    assert set(made) == {Version(3, 1)}
    assert repr(made[0]) == repr(made[-1]) == "Version(major=3, minor=1)"


def test_values_are_compared_ordered_and_kept_as_dataclasses_does_it() -> None:
    assert Point(x=1) == Point(x=1, y=2)
    assert len({Point(x=1), Point(x=1)}) == 1
    assert sorted([Version(2), Version(1, 5), Version(1)]) == [
        Version(1),
        Version(1, 5),
        Version(2),
    ]
    assert Node() != Node()
    assert len({Node(), Node()}) == 2
    assert pickle.loads(pickle.dumps(Point(x=4))) == Point(x=4)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Point(x=1).x = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        hash(Box("a"))


def test_a_copy_with_changes() -> None:
    assert replace(Point(x=1), y=5) == Point(x=1, y=5) == dataclasses.replace(Point(x=1), y=5)
    assert replace(Open([1]), items=[2]) == Open([2])
    with pytest.raises(TypeError):
        replace(Point(x=1), z=5)  # type: ignore[call-arg]
    assert dataclasses.asdict(Point(x=1)) == {"x": 1, "y": 2, "more": ()}

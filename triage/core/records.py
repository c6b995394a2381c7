"""Data classes that cost nothing until they are used.

In:  a class, as `dataclasses.dataclass` takes it. Out: the same class, with its methods to come.
Not: anything that `dataclasses` does not do: it writes the methods, once they are worth it.

Importing `dataclasses` takes five milliseconds, for what it imports in turn, and writing and
compiling the methods of one class a third of one. A command that classifies a log knows fifty
of them, makes a few values of twenty, and would spend half its time on that. So the first
values of a class are made without: only what is made often, compared or shown is completed.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass", "field", "replace"]

_OFTEN = 400  # values of a class after which a faster `__init__` pays

if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
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
            if not slots or cls.__bases__ != (object,):
                import dataclasses  # noqa: PLC0415

                for name, value in tuple(cls.__dict__.items()):
                    if isinstance(value, _Field):
                        setattr(cls, name, value.full())
                return dataclasses.dataclass(slots=slots, eq=eq, order=order, **options)(cls)
            return _later(cls, options, eq=eq, order=order)

        return make

    def field(**options: Any) -> Any:
        """`dataclasses.field`, also before that is imported."""
        return _Field(options)

    def replace(value: Any, /, **changes: Any) -> Any:
        """`dataclasses.replace`."""
        cls = type(value)
        if cls.__bases__ != (object,) or "__slots__" not in cls.__dict__:
            import dataclasses  # noqa: PLC0415

            return dataclasses.replace(value, **changes)
        for name in cls.__slots__:
            if name not in changes:
                changes[name] = getattr(value, name)
        return cls(**changes)


# What `dataclasses` writes beside `__init__`.
_REST = ("__repr__", "__eq__", "__hash__")
_ORDER = ("__lt__", "__le__", "__gt__", "__ge__")
_ABOUT = ("__dataclass_fields__", "__dataclass_params__")


class _Field:
    """What `field` was told."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options

    def full(self) -> Any:
        """The same for `dataclasses`."""
        import dataclasses  # noqa: PLC0415

        return dataclasses.field(**self.options)


def _later(cls: type, options: dict[str, bool], *, eq: bool, order: bool) -> type:
    """The class with slots, and with methods that complete it when they are first called."""
    rest = (*_REST, *_ORDER) if order else _REST if eq else _REST[:1]
    own = dict(cls.__dict__)
    names = tuple(own.get("__annotations__", ()))
    space = {k: v for k, v in own.items() if k not in (*names, "__dict__", "__weakref__")}
    space["__slots__"] = names
    space["__match_args__"] = () if options["kw_only"] else names
    if options["frozen"]:
        space |= {"__setattr__": _refuse, "__delattr__": _refuse}
        space |= {"__getstate__": _state, "__setstate__": _restore}
    elif eq and "__eq__" not in own:
        space.setdefault("__hash__", None)
    made = type(cls)(cls.__name__, cls.__bases__, space)
    made.__qualname__ = cls.__qualname__

    def complete(name: str) -> Any:
        """Let `dataclasses` write this method, or all but `__init__`, and take it over."""
        import dataclasses  # noqa: PLC0415

        init = name == "__init__"
        body = {
            k: v.full() if isinstance(v, _Field) else v
            for k, v in own.items()
            if k not in _OF_A_CLASS
        }
        shadow = type(cls.__name__, (), body)
        shadow.__qualname__ = cls.__qualname__
        others = {"repr": not init, "eq": eq and not init, "order": order and not init}
        dataclasses.dataclass(init=init, **others, **options)(shadow)
        for known in (name,) if init else (*rest, *_ABOUT):
            if known in shadow.__dict__ and known not in own:
                setattr(made, known, shadow.__dict__[known])
        return getattr(made, name)

    if eq and "__eq__" not in own and "__hash__" not in own and names and _is_plain(names, own):
        methods = _comparison(names)
        for name in ("__eq__", "__hash__") if options["frozen"] else ("__eq__",):
            setattr(made, name, methods[name])
    for name in rest:
        if name not in made.__dict__:
            setattr(made, name, _first_call(complete, name))
    if "__init__" not in space:
        made.__init__ = _first_values(complete, names, own, positions=not options["kw_only"])  # type: ignore[misc]
    for name in _ABOUT:
        setattr(made, name, _FirstLook(complete, name))
    return made


_OF_A_CLASS = ("__dict__", "__weakref__", "__slots__")


def _first_call(complete: Callable[[str], Any], name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **given: Any) -> Any:
        return complete(name)(self, *args, **given)

    method.__name__ = name
    return method


def _is_plain(names: tuple[str, ...], own: dict[str, Any]) -> bool:
    """Whether no field asks for more than a default."""
    fields = [own[name] for name in names if name in own and _is_field(own[name])]
    usual = {"default", "default_factory"}
    return all(isinstance(one, _Field) and usual.issuperset(one.options) for one in fields)


def _comparison(names: tuple[str, ...]) -> dict[str, Callable[..., Any]]:
    """`__eq__` and `__hash__` over the fields, as `dataclasses` writes them."""
    values = attrgetter(*names, names[0])  # with one name alone it would give no tuple

    def equal(self: Any, other: object) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    return {"__eq__": equal, "__hash__": lambda self: hash(values(self))}


def _first_values(
    complete: Callable[[str], Any], names: tuple[str, ...], own: dict[str, Any], *, positions: bool
) -> Callable[..., None]:
    """An `__init__` that needs no code of its own; wrong arguments are left to the true one."""
    defaults: dict[str, Any] = {}
    factories: dict[str, Callable[[], Any]] = {}
    for name in names:
        value = own.get(name)
        if isinstance(value, _Field) and tuple(value.options) == ("default_factory",):
            factories[name] = value.options["default_factory"]
        elif isinstance(value, _Field) and tuple(value.options) == ("default",):
            defaults[name] = value.options["default"]
        elif name in own:
            defaults[name] = value
    if "__post_init__" in own or any(_is_field(value) for value in defaults.values()):
        return _first_call(complete, "__init__")
    put = object.__setattr__
    made = 0

    def init(self: Any, *args: Any, **given: Any) -> None:
        nonlocal made
        made += 1
        values = {**defaults, **given}
        if args:
            values.update(zip(names, args, strict=False))
        for name, make in factories.items():
            if name not in values:
                values[name] = make()
        good = len(values) == len(names) and made <= _OFTEN
        if args:
            good = good and positions and len(args) <= len(names)
            good = good and given.keys().isdisjoint(names[: len(args)])
        if good:
            try:
                for name, value in values.items():
                    put(self, name, value)
            except AttributeError:  # one of the names is none, so another one is missing
                good = False
        if not good:
            complete("__init__")(self, *args, **given)

    init.__name__ = "__init__"
    return init


def _is_field(value: object) -> bool:
    """Whether it is a field, ours or that of `dataclasses`, which need not be imported for it."""
    return isinstance(value, _Field) or type(value).__name__ == "Field"


class _FirstLook:
    """What `dataclasses.fields`, `replace` and `asdict` ask of a class."""

    def __init__(self, complete: Callable[[str], Any], name: str) -> None:
        self._complete = complete
        self._name = name

    def __get__(self, _instance: object, _owner: type) -> Any:
        return self._complete(self._name)


def _refuse(self: object, name: str, *_value: object) -> NoReturn:
    from dataclasses import FrozenInstanceError  # noqa: PLC0415

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__slots__]


def _restore(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__slots__, state, strict=True):
        object.__setattr__(self, name, value)

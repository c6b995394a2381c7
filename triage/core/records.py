"""Data classes that cost nothing until they are used.

In:  a class, as `dataclasses.dataclass` takes it. Out: the same class, with its methods to come.
Not: anything that `dataclasses` does not do: it writes the methods, once they are worth it.

Importing `dataclasses` takes five milliseconds, for what it imports in turn, and writing and
compiling the methods of one class a third of one. A command that classifies a log knows fifty
of them, makes a few values of twenty, and would spend half its time on that. So the first
values of a class are made without: only what is made often, compared or shown is completed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter

from triage.core.typed import TYPE_CHECKING, Any, NoReturn

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


class _Field:
    """What `field` was told."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options

    def full(self) -> Any:
        """The same for `dataclasses`."""
        import dataclasses  # noqa: PLC0415

        return dataclasses.field(**self.options)


def _later(cls: type, options: dict[str, bool], *, eq: bool, order: bool) -> type:
    """The class with slots, and with methods that complete it when they are first called.

    All of them are there as it is made: to add one afterwards takes as long as a small class.
    """
    own = cls.__dict__
    names = tuple(own.get("__annotations__", ()))
    space: dict[str, Any] = {**_FIRST, **(_FROZEN if options["frozen"] else _OPEN)}
    if order:
        space |= _FIRST_ORDER
    if not eq:
        del space["__eq__"], space["__hash__"]
    space |= {name: own[name] for name in own if name not in names and name not in _SHAPE}
    space |= {"__slots__": names, "__qualname__": cls.__qualname__}
    space["__match_args__"] = () if options["kw_only"] else names
    later = space["__later__"] = _Later(own, names, options, eq=eq, order=order)
    later.made = type(cls)(cls.__name__, cls.__bases__, space)
    return later.made


class _Later:
    """What completes a class, as its `__later__`."""

    made: type

    def __init__(
        self,
        own: Mapping[str, Any],
        names: tuple[str, ...],
        options: dict[str, bool],
        *,
        eq: bool,
        order: bool,
    ) -> None:
        self._own, self._names, self._options = own, names, options
        self._eq, self._order = eq, order

    def method(self, name: str) -> Any:
        """The method that the class has from here on."""
        method = None
        if name == "__init__":
            method = self._first_values()
        elif name in ("__eq__", "__hash__"):
            method = self._comparison(name)
        if method is None:
            return self.complete(name)
        setattr(self.made, name, method)
        return method

    def complete(self, name: str) -> Any:
        """Let `dataclasses` write this method, or all but `__init__`, and take it over."""
        import dataclasses  # noqa: PLC0415

        own, made, init = self._own, self.made, name == "__init__"
        body = {
            k: v.full() if isinstance(v, _Field) else v for k, v in own.items() if k not in _SHAPE
        }
        shadow = type(made.__name__, (), body)
        shadow.__qualname__ = made.__qualname__
        others = {"repr": not init, "eq": self._eq and not init, "order": self._order and not init}
        dataclasses.dataclass(init=init, **others, **self._options)(shadow)
        for known in (name,) if init else (*_REST, *_ORDER, *_ABOUT):
            if known in shadow.__dict__ and known not in own:
                setattr(made, known, shadow.__dict__[known])
        return getattr(made, name)

    def _comparison(self, name: str) -> Callable[..., Any] | None:
        """`__eq__` or `__hash__` over the fields, as `dataclasses` writes them for plain ones."""
        own, names, usual = self._own, self._names, {"default", "default_factory"}
        fields = [own[one] for one in names if one in own and _is_field(own[one])]
        if not all(isinstance(one, _Field) and usual.issuperset(one.options) for one in fields):
            return None
        if not names:
            return None
        values = attrgetter(*names, names[0])  # with one name alone it would give no tuple

        def equal(self: Any, other: object) -> bool:
            return values(self) == values(other) if type(other) is type(self) else NotImplemented

        return equal if name == "__eq__" else lambda self: hash(values(self))

    def _first_values(self) -> Callable[..., None] | None:
        """An `__init__` that needs no code of its own; wrong arguments are left to the true one."""
        own, names, positions = self._own, self._names, not self._options["kw_only"]
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
            return None
        put, complete = object.__setattr__, self.complete
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


def _first_call(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **given: Any) -> Any:
        return self.__later__.method(name)(self, *args, **given)

    method.__name__ = name
    return method


class _FirstLook:
    """What `dataclasses.fields`, `replace` and `asdict` ask of a class."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, _instance: object, owner: Any) -> Any:
        return owner.__later__.complete(self._name)


def _refuse(self: object, name: str, *_value: object) -> NoReturn:
    from dataclasses import FrozenInstanceError  # noqa: PLC0415

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__slots__]


def _restore(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__slots__, state, strict=True):
        object.__setattr__(self, name, value)


# What `dataclasses` writes beside `__init__`, and what a class has that has no slots.
_REST = ("__repr__", "__eq__", "__hash__")
_ORDER = ("__lt__", "__le__", "__gt__", "__ge__")
_ABOUT = ("__dataclass_fields__", "__dataclass_params__")
_SHAPE = ("__dict__", "__weakref__", "__slots__")
# What a class begins with.
_FIRST: dict[str, Any] = {name: _first_call(name) for name in ("__init__", *_REST)}
_FIRST |= {name: _FirstLook(name) for name in _ABOUT}
_FIRST_ORDER = {name: _first_call(name) for name in _ORDER}
_FROZEN = {"__setattr__": _refuse, "__delattr__": _refuse,
           "__getstate__": _state, "__setstate__": _restore}  # fmt: skip
_OPEN: dict[str, Any] = {"__hash__": None}

"""The value of a Python or JSON literal, as `repr` and `json.dumps` write them, without evaluating.

In:  the text of one value, not trusted. Out: plain values.
Not: finding the text in a log (server_args.py).

One pass over the text with a stack of its own, so that the time is linear and no nesting can
end the interpreter. What programs print for objects is read as far as it is plain: a record
`Name(a=1)` becomes a mapping, `Path('/x')` its only value, a name (`Mode.FAST`,
`<Mode.FAST: 'fast'>`) its text. A set becomes a list in the order of its texts: the one it
was printed in is chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from triage.core.records import dataclass, field
from triage.core.regex import regex

MAX_DEPTH = 32
MAX_DIGITS = 400

_TOKEN = regex(
    r"""\s*(?:
      (?P<prefix>[bru]?)(?P<text>'[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*")
    | (?P<number>[+-]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?(?![\w.])
        | [+-]?inf\b | nan\b)
    | (?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
    | <(?P<member>[A-Za-z_]\w*\.[A-Za-z_]\w*):[ ][^<>\n]{1,200}>
    | <class[ ]'(?P<cls>[\w.]{1,200})'>
    | (?P<open>[\[({])
    | (?P<close>[\])}])
    | (?P<comma>,)
    | (?P<colon>:)
    | (?P<equals>=)
    )""",
    re.VERBOSE,
)
_ESCAPE = regex(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))")
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "/": "/",
          "a": "\a", "b": "\b", "f": "\f", "v": "\v"}  # fmt: skip
_WORDS: dict[str, object] = {
    "True": True, "False": False, "None": None, "true": True, "false": False, "null": None,
}  # fmt: skip
_PAIRS = {"[": "]", "(": ")", "{": "}"}
# Of these, and of what looks like a class, an only positional value is the value.
_HOLDERS = frozenset({"set", "frozenset", "dict", "list", "tuple", "deque", "mappingproxy"})


@dataclass(slots=True)
class _Group:
    """A bracket that is open: its values so far, and the key that waits for one.

    `name` is what stands before a bracket of a call; None: it is no call.
    """

    kind: str
    name: str | None = None
    items: list[object] = field(default_factory=list)
    named: dict[object, object] = field(default_factory=dict)
    waiting: list[object] = field(default_factory=list)  # a key, once its : or = was read
    full: bool = False  # a value was read, and no comma after it
    ever: bool = False  # a comma was read


def literal(text: str) -> object:
    """The value.

    Raises:
        ValueError: it is no literal, is nested too deeply, or is of a kind that is not read.
    """
    top = _Group("")
    stack = [top]
    for kind, found in _tokens(text):
        group = stack[-1]
        match kind:
            case "open":
                name = _callee(group) if found == "(" else None
                if name is None and group.full:
                    raise ValueError("two values in a row")
                stack.append(_Group(str(found), name))
                if len(stack) > MAX_DEPTH:
                    raise ValueError("nested too deeply")
            case "close":
                if len(stack) == 1 or _PAIRS[group.kind] != found:
                    raise ValueError("a bracket does not fit")
                _settle(group)
                stack.pop()
                _put(stack[-1], _closed(group))
            case "comma":
                if len(stack) == 1 or not group.full:
                    raise ValueError("a comma without a value")
                _settle(group)
                group.full, group.ever = False, True
            case "colon" | "equals":
                _key(group, kind)
            case _:
                _put(group, found)
    if len(stack) > 1 or len(top.items) != 1:
        raise ValueError("not one whole value")
    return _plain(top.items[0])


@dataclass(frozen=True, slots=True)
class _Name:
    """A bare word: a name, until an `=` or a bracket says that it is a key or a class."""

    text: str


def _tokens(text: str) -> Iterator[tuple[str, object]]:
    at, end = 0, len(text.rstrip())
    while at < end:
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"no literal at character {at}")
        at = token.end()
        if token["text"] is not None:
            raw = token["text"][1:-1]
            plain = "\\" not in raw or token["prefix"] == "r"
            yield "value", raw if plain else _ESCAPE.sub(_unescaped, raw)
        elif token["number"] is not None:
            yield "value", _number(token["number"])
        elif (name := token["name"] or token["member"] or token["cls"]) is not None:
            yield "value", _WORDS[name] if name in _WORDS else _Name(name)
        else:
            kind = str(token.lastgroup)
            yield kind, token[kind]


def _unescaped(found: re.Match[str]) -> str:
    for digits, base in zip(found.groups()[:4], (16, 16, 16, 8), strict=True):
        if digits is not None:
            code = int(digits, base)
            # A lone half of a pair cannot be printed, nor a number beyond the last character.
            return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"  # noqa: PLR2004
    return _SHORT.get(found[5], found[0])


def _number(text: str) -> object:
    if len(text) > MAX_DIGITS:
        raise ValueError("a number of too many digits")
    try:
        return int(text)
    except ValueError:
        return float(text)


def _callee(group: _Group) -> str | None:
    """The name before an opening bracket, taken back from the values; None if there is none."""
    if not group.full or not group.items or not isinstance(group.items[-1], _Name):
        return None
    name = group.items.pop()
    assert isinstance(name, _Name)  # noqa: S101  seen above
    last = name.text.rpartition(".")[2]
    if not last[:1].isupper() and name.text not in _HOLDERS:
        raise ValueError(f"a call of {name.text[:40]}")
    group.full = False
    return name.text


def _key(group: _Group, kind: str) -> None:
    """What was read last is a key: of a mapping by a colon, of a record by an equals sign."""
    mapping = kind == "colon" and group.kind == "{"
    record = kind == "equals" and group.name is not None
    if not (mapping or record) or not group.full or not group.items or group.waiting:
        raise ValueError("a key in the wrong place")
    key = group.items.pop()
    if record and not isinstance(key, _Name):
        raise ValueError("a record's key is no name")
    key = _plain(key)
    if isinstance(key, list | dict):
        raise ValueError("a key that is no plain value")  # noqa: TRY004  as all others here
    group.waiting.append(key)
    group.full = False


def _put(group: _Group, value: object) -> None:
    if group.full:
        raise ValueError("two values in a row")
    # A name that is the value of a key may become a call, so it waits among the items.
    group.items.append(value)
    group.full = True
    if group.waiting and not isinstance(value, _Name):
        _settle(group)


def _settle(group: _Group) -> None:
    """Give the waiting key, if there is one, its value."""
    if group.waiting:
        if not group.full:
            raise ValueError("a key without a value")
        group.named[group.waiting.pop()] = _plain(group.items.pop())


def _closed(group: _Group) -> object:
    """The value of a bracket that has closed."""
    items = [_plain(item) for item in group.items]
    if group.kind == "[":
        return items
    if group.kind == "{":
        if group.named and items:
            raise ValueError("a set and a mapping at once")
        return group.named if group.named or not items else sorted(items, key=str)
    if group.name is None:
        return items[0] if len(items) == 1 and not group.ever else tuple(items)
    if not group.named:
        return items[0] if len(items) == 1 else (items or {})
    return {str(at): item for at, item in enumerate(items)} | group.named


def _plain(value: object) -> object:
    return value.text if isinstance(value, _Name) else value

"""Read one YAML file into a checked model; every mistake gets its file and line.

In:  the path of a YAML file and the pydantic model that it must fit.
Out: the model, or a UsageError such as
     `recipes/x.yaml:7: wanted[0].wieght: unknown key, did you mean weight?`
Not: what the values mean (triage.recipe, triage.knowledge, triage.replay).

Scalars follow the core schema of YAML 1.2, not 1.1: `off`, `010`, `12:30` and
dates stay text, because they are flag values as people type them.
"""

from __future__ import annotations

import json
import re
import shlex
import stat
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from triage.errors import UsageError

if TYPE_CHECKING:
    import yaml
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound="BaseModel")
Where = tuple[str | int, ...]

MAX_BYTES = 4 << 20
MAX_DEPTH = 32  # nested collections; recipes need six
MAX_NODES = 200_000  # after aliases are followed: a small file can name billions

# No leading zero: 010 is a name or a time, not ten and not eight.
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?\Z")
_TAGS = frozenset(["map", "seq", "str", "int", "float", "bool", "null", "timestamp", "value"])
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}


def load_yaml(path: Path, model: type[M]) -> M:
    """The file's content as `model`, which must be strict and forbid extra keys.

    Raises:
        UsageError: the file cannot be read, is no YAML, is too large, repeats a
            key, or does not fit the model.
    """
    return parse_yaml(_text_of(path), str(path), model)


def plain_yaml(path: Path) -> dict[str, Any]:
    """The mapping of a generated file that needs no model; raises UsageError as load_yaml."""
    data = _Reader(str(path)).read(_text_of(path))
    if not isinstance(data, dict):
        raise UsageError(f"{path}:1: must be a mapping", hint=f"head {shlex.quote(str(path))}")
    return data


def _text_of(path: Path) -> str:
    try:
        # Opening a pipe waits for somebody who writes; a directory fails in open.
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            with path.open("rb") as file:
                return file.read(MAX_BYTES + 1).decode()
        look, what = f"ls -l {shlex.quote(str(path))}", "no regular file"
    except FileNotFoundError:
        look, what = f"ls {shlex.quote(str(path.parent))}", "no such file"
    except UnicodeDecodeError as error:
        look, what = f"file {shlex.quote(str(path))}", f"not UTF-8 text (byte {error.start})"
    except OSError as error:
        look = f"ls -ld {shlex.quote(str(path))}"
        what = f"cannot be read: {(error.strerror or str(error)).lower()}"
    raise UsageError(f"{path}: {what}", hint=look)


def parse_yaml(text: str, name: str, model: type[M]) -> M:
    """`load_yaml` of a text that was read already; `name` stands for the file in messages."""
    from pydantic import ValidationError  # noqa: PLC0415  slow to import

    reader = _Reader(name)
    data = reader.read(text)
    try:
        # Through JSON: strict validation then still takes lists for tuples and
        # strings for enums, which is all that YAML can write.
        return model.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise reader.refusal(error.errors(include_url=False), model) from None


class _Reader:
    """One file's nodes as plain data, with the line of every key and item."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[Where, int] = {}
        self.nodes = 0

    def read(self, text: str) -> Any:
        import yaml  # noqa: PLC0415  slow to import

        if len(text) > MAX_BYTES:
            raise self._whole(f"larger than {MAX_BYTES >> 20} MiB")
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            self._check_depth(yaml, text, loader)
            root = yaml.compose(text, loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            said = ", ".join(filter(None, (error.context, error.problem))) or "no YAML"
            raise self._error(mark.line + 1 if mark else 1, (), said) from None
        except yaml.YAMLError as error:
            raise self._whole(f"no YAML: {' '.join(str(error).split())}") from None
        if root is None:
            raise self._whole("the file is empty")
        return self._plain(root, (), ())

    def _check_depth(self, yaml: Any, text: str, loader: Any) -> None:
        # Events come one by one; composing recurses in C and would overflow.
        depth = 0
        for event in yaml.parse(text, loader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                line = event.start_mark.line + 1
                raise self._error(line, (), f"nested deeper than {MAX_DEPTH} levels")

    def _plain(self, node: yaml.Node, where: Where, inside: tuple[int, ...]) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(where, line)
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self._error(
                line, where, f"more than {MAX_NODES} values once aliases are followed"
            )
        if id(node) in inside:
            raise self._error(line, where, "an alias that contains itself")
        if node.tag.removeprefix("tag:yaml.org,2002:") not in _TAGS:
            raise self._error(line, where, f"the tag {node.tag} is not supported")
        inside = (*inside, id(node))
        match node.id:  # type: ignore[attr-defined]  # the stubs leave it out
            case "mapping":
                return self._mapping(node, where, inside)
            case "sequence":
                items = enumerate(node.value)
                return [self._plain(item, (*where, index), inside) for index, item in items]
            case _:
                return self._scalar(node)

    def _mapping(self, node: yaml.Node, where: Where, inside: tuple[int, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.id != "scalar":
                raise self._error(line, where, "a key must be plain text")
            name = str(key.value)
            at = (*where, name)
            if name == "<<":
                raise self._error(line, where, "merge keys are not supported, write the keys out")
            if name in found:
                raise self._error(line, at, f"repeats the key of line {self.lines[at]}")
            self.lines.setdefault(at, line)
            found[name] = self._plain(value, at, inside)
        return found

    def _scalar(self, node: yaml.Node) -> str | int | float | bool | None:
        text: str = node.value
        if node.style:  # type: ignore[attr-defined]  # quoted or a block: always text
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INT.match(text):
            return int(text)
        if _FLOAT.match(text):
            return float(text)
        return text

    def refusal(self, errors: list[ErrorDetails], model: type[BaseModel]) -> UsageError:
        """The first problem of the file, in the order of its lines."""
        line, where, what = min(
            (self._explain(error, model) for error in errors), key=lambda found: found[0]
        )
        more = len({tuple(error["loc"]) for error in errors}) - 1
        return self._error(line, where, what + (f" (and {more} more)" if more else ""))

    def _explain(self, error: ErrorDetails, model: type[BaseModel]) -> tuple[int, Where, str]:
        where = self._known(error["loc"])
        line = self.lines.get(where, 1)
        kind, value, details = error["type"], error["input"], error.get("ctx", {})
        shown = _shown(value)
        match kind:
            case "extra_forbidden":
                return line, where, "unknown key" + _suggest(str(where[-1]), _keys(model, where))
            case "missing":
                return line, where, f"the key {error['loc'][-1]} is missing"
            case "enum" | "literal_error":
                allowed = re.findall(r"'([^']*)'", str(details.get("expected", "")))
                return line, where, f"{shown} is not allowed" + _suggest(str(value), allowed)
            case "value_error":
                return line, where, str(details.get("error", error["msg"]))
            case _:
                said = error["msg"].removeprefix("Input ")
                return line, where, f"{said[0].lower()}{said[1:]}, not {shown}"

    def _known(self, loc: Where) -> Where:
        # A union puts the names of its members into the location; the file has no such key.
        where: Where = ()
        for part in loc:
            if (*where, part) in self.lines:
                where = (*where, part)
        return where

    def _whole(self, what: str) -> UsageError:
        return UsageError(f"{self.name}: {what}", hint=f"head {shlex.quote(self.name)}")

    def _error(self, line: int, where: Where, what: str) -> UsageError:
        path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in where).lstrip(".")
        return UsageError(
            f"{self.name}:{line}: {path + ': ' if path else ''}{what}",
            hint=f"sed -n {line}p {shlex.quote(self.name)}",
        )


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else f"{text[:37]}..."  # noqa: PLR2004  one line of a message


def _suggest(word: str, known: list[str]) -> str:
    close = get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f", did you mean {close[0]}?"
    return f"; known: {', '.join(known)}" if known else ""


def _keys(model: type[BaseModel], where: Where) -> list[str]:
    """The keys that the model knows in the mapping that holds `where`."""
    holders = _models(model)
    for part in where[:-1]:
        inner = [
            field.annotation
            for holder in holders
            for name, field in holder.model_fields.items()
            if part in (name, field.alias)
        ]
        if inner:  # an index or a free key: the item type was unwrapped already
            holders = [found for annotation in inner for found in _models(annotation)]
    return [
        field.alias or name for holder in holders for name, field in holder.model_fields.items()
    ]


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The models in a type such as `dict[str, list[Item]] | None`."""
    if hasattr(annotation, "model_fields"):
        return [annotation]
    return [found for inner in get_args(annotation) for found in _models(inner)]

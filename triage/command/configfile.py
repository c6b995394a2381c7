"""Read and edit the YAML file that SGLang takes with `--config`.

In:  its text, and the flag table.
Out: canonical flags with the place of each key; the text with other flags.
Not: merging with a command line (triage.command.read).

Source: `ConfigArgumentMerger` of SGLang 0.5.23
(sglang/srt/utils/server_args_config_parser.py), which loads YAML 1.1.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from triage.core.config import Config, Given, Value
from triage.core.flags import FlagTable, Known
from triage.errors import UsageError

LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
LOOKS_LIKE = re.compile(
    r"\A(?:[ \t]*(?:#[^\n]*)?\r?\n|---[^\n]*\n)*[ \t]*"
    r"(?:['\"]?[A-Za-z][\w-]*['\"]?[ \t]*:(?:\s|\Z)|\{)"
)
MAX_DEPTH = 32
MAX_EVENTS = 20_000  # the engine has some 500 flags
# What YAML 1.1 does not take as it is, or takes for a line end.
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The flags of a config file, and its keys in order: (canonical name, key, start, end)."""

    flags: dict[str, Value]
    keys: tuple[tuple[str, str, int, int], ...]
    notes: tuple[str, ...]
    problems: tuple[str, ...]


def read_config_file(text: str, table: FlagTable, name: str = "the config file") -> ConfigFile:
    """The flags as SGLang takes them from the file.

    Raises:
        UsageError: no YAML, no mapping, nested too deeply, or a switch with a value.
    """
    root = _root(text, name)
    flags: dict[str, Value] = {}
    keys: list[tuple[str, str, int, int]] = []
    notes: list[str] = []
    problems: list[str] = []
    for key_node, value_node in root.value:
        key = str(key_node.value)
        value = _loaded(value_node, name)
        found = table.lookup(key, suggest=False)
        if isinstance(found, Known) and not found.spec.config_file:
            problems.append(
                f"{table.engine} {table.version} refuses {key} in a config file: it belongs on the"
                " command line"
            )
        if value is None:
            value = "None"  # what the engine makes of an empty value
            notes.append(f"{key} has no value: the engine reads None")
        if isinstance(found, Known) and "_" in key:
            problems.append(f"{key}: the engine accepts only the spelling {_dashed(key)[2:]}")
        if isinstance(value, str) and not table.is_value(value):
            problems.append(f"{key}: {value} begins with a dash, the engine takes it for a flag")
        named = table.normal({key: value})
        flags |= named
        own = found.spec.name if isinstance(found, Known) else next(iter(named), _dashed(key))
        end = max(_end(value_node), key_node.end_mark.index)
        keys.append((own, key, key_node.start_mark.index, end))
    return ConfigFile(flags, tuple(keys), tuple(notes), tuple(problems))


def given_keys(file: ConfigFile) -> tuple[Given, ...]:
    """Which key of the file, by position, is which flag."""
    return tuple(Given(own, at, at + 1) for at, (own, *_) in enumerate(file.keys))


def write_config_file(text: str, given: tuple[Given, ...], old: Config, new: Config) -> str:
    """The same file with the new flags; lines of unchanged flags stay as they are.

    Raises:
        UsageError: the config cannot be said in such a file.
    """
    if new.env != old.env:
        raise UsageError(
            "a config file of SGLang holds no environment variables",
            hint="set them before the command: NAME=VALUE python -m sglang.launch_server ...",
        )
    root = _root(text, "the config file")
    spans = [(k.start_mark.index, max(_end(v), k.end_mark.index)) for k, v in root.value]
    spelled = [str(key.value) for key, _ in root.value]
    before, after = old.flag_values(), new.flag_values()
    last = {one.name: one.first for one in given}
    if root.flow_style or not spans:
        kept = {spelled[last[n]] if n in last else n: v for n, v in after.items()}
        return "".join(f"{_line(key, value)}\n" for key, value in kept.items())
    edits: list[tuple[int, int, str]] = []
    for one in given:
        start, end = spans[one.first]
        if one.name not in after or one.first != last[one.name]:
            edits.append((*_whole_lines(text, start, end), ""))
        elif before.get(one.name) != after[one.name]:
            edits.append((start, end, _line(spelled[one.first], after[one.name])))
    added = [_line(name, value) for name, value in after.items() if name not in last]
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    if added:
        head, mark, tail = _document_end(text)
        head = head if head.endswith("\n") or not head else head + "\n"
        text = head + "".join(f"{line}\n" for line in added) + mark + tail
    return text


def _document_end(text: str) -> tuple[str, str, str]:
    found = re.search(r"^\.\.\.[ \t\r]*$", text, re.MULTILINE)
    return (text[: found.start()], found[0], text[found.end() :]) if found else (text, "", "")


def load_for_command(path: Path, table: FlagTable) -> dict[str, Value] | str:
    """The flags of the file that a command names, or why they cannot be had."""
    if path.suffix.lower() not in (".yaml", ".yml"):
        return f"--config {path}: the engine accepts only .yaml and .yml"
    try:
        if path.exists() and not path.is_file():
            return f"--config {path} is not read: no regular file"
        with path.open("rb") as file:
            text = file.read(1 << 20).decode()
        return read_config_file(text, table, str(path)).flags
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        return f"--config {path} is not read: {(reason or 'unreadable').lower()}"


def _root(text: str, name: str) -> yaml.MappingNode:
    depth = 0
    try:
        # Events come one by one; composing recurses in C and would overflow.
        for number, event in enumerate(yaml.parse(text, LOADER)):
            if number > MAX_EVENTS:
                raise UsageError(f"{name}: too long for a config file")
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise UsageError(f"{name}: nested deeper than {MAX_DEPTH} levels")
            if isinstance(event, yaml.AliasEvent):
                raise UsageError(f"{name}: aliases are not supported, write the values out")
        root = yaml.compose(text, LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise UsageError(f"{name}:{line}: {error.problem or 'no YAML'}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{name}: no YAML: {' '.join(str(error).split())[:100]}") from None
    if isinstance(root, yaml.MappingNode) and any(
        key.value == "schema" and str(value.value).startswith("triage.")
        for key, value in root.value
    ):
        raise UsageError(
            f"{name} is a file of triage's own, not a config file of the engine",
            hint="triage bisect --dry-run RECIPE",
        )
    if not isinstance(root, yaml.MappingNode) or any(
        not isinstance(key, yaml.ScalarNode) for key, _ in root.value
    ):
        raise UsageError(f"{name}: not a mapping of flags to values", hint="model-path: MODEL")
    return root


def _loaded(node: yaml.Node, name: str) -> object:
    """The node as `yaml.safe_load` gives it."""
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_document(node)
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        line = node.start_mark.line + 1
        said = " ".join(str(getattr(error, "problem", error)).split())[:100]
        raise UsageError(f"{name}:{line}: {said}") from None


def _end(node: yaml.Node) -> int:
    """Where a value's own text ends; a block collection's mark lies behind the blank lines."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    end: int = node.end_mark.index
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        text = node.end_mark.buffer or ""
        end -= len(text[:end]) - len(text[:end].rstrip()) if text else 1
    return end


def _whole_lines(text: str, start: int, end: int) -> tuple[int, int]:
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    return first, len(text) if last < 0 else last + 1


def _dashed(key: str) -> str:
    return "--" + key.lstrip("-").replace("_", "-")


def _line(key: str, value: Value) -> str:
    return f"{_scalar(key)}: {_written(value)}"


def _written(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _scalar(value)
        case items:
            return "[" + ", ".join(map(_scalar, items)) + "]"


def _scalar(text: str) -> str:
    """YAML that SGLang turns into exactly this word: plain where that is safe."""
    if re.fullmatch(r"[\w./+-]+", text, re.ASCII):
        try:
            loaded = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError):
            loaded = None
        number_or_text = isinstance(loaded, str | int | float) and not isinstance(loaded, bool)
        if number_or_text and str(loaded) == text:
            return text
    quoted = json.dumps(text, ensure_ascii=False)
    return UNPRINTABLE.sub(lambda m: f"\\u{ord(m[0]):04x}", quoted)

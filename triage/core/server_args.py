"""The `server_args=` line of a log: the values that the engine resolved.

In:  the text of a log, or of the line; the flag table of the engine's version.
Out: field -> value; and the flags that differ from the engine's defaults.
Not: what the user typed: values that the engine filled in are in the line too.

Source: `ServerArgs.resolved_dict` of SGLang 0.5.23 (a dict literal) and
`ServerArgs.__repr__` of older releases (`ServerArgs(a=1, ...)`), from 0.2 of 2024 on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

from triage.core.config import Value
from triage.core.flags import Default, FlagTable, Style
from triage.core.literal import literal
from triage.core.records import dataclass
from triage.core.regex import regex
from triage.errors import UsageError

MAX_CHARS = 1_000_000  # the real line has 40 kB

# Where the dump begins.
#   example  [2026-01-01 10:00:00] server_args={'model_path': '/models/x', ...
#   example  [2025-01-01 10:00:00] server_args=ServerArgs(model_path='/models/x', ...
#   example  [2026-01-01 10:00:00] INFO engine:177: server_args=ServerArgs(model_path='m', ...
START = regex(r"server_args=(?:(?:\w{1,60}\.){0,6}\w{0,60}Args\(|\{(?=\s*['\"]))")
# A bare dump, without the log's words before it; the dict must look like one of ours.
BARE = regex(r"\s*(?:\w{0,60}ServerArgs\(|\{(?=\s*['\"]model_path['\"]\s*:))")
KEY = regex(r"\s*(?:(?P<word>[A-Za-z_]\w*)\s*=|(?P<quote>['\"])(?P<text>\w+)(?P=quote)\s*:)")
# What matters to find the end of a value: a string, a bracket, a comma.
TOKEN = regex(
    r"""'[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<comma>,)"""
    r"""|(?P<torn>['"])"""
)

# Values whose text needs no parser: a number, a string without escapes.
_USUAL = regex(
    r"""(?P<whole>-?(?:0|[1-9]\d{0,17}))|(?P<real>-?\d{1,9}\.\d{1,17})"""
    r"""|'[^'\\\n\r\0]*'|"[^"\\\n\r\0]*\"""",
    re.ASCII,
)
# A field with such a value and its comma: what most of a dump is.
_ITEM = regex(
    r"""\s*(?:(?P<word>[A-Za-z_]\w*)\s*=|'(?P<text>\w+)'\s*:)\s*"""
    r"""(?P<value>True|False|None|-?(?:0|[1-9]\d{0,17})|-?\d{1,9}\.\d{1,17}|'[^'\\\n\r\0]*')\s*,""",
    re.ASCII,
)
_KNOWN_ITEMS: dict[str, tuple[str, object]] = {}  # as printed -> field, value
_MOST_ITEMS, _SHORT = 4096, 200  # of those that are remembered, and their characters
_WORDS: Mapping[str, object] = {"True": True, "False": False, "None": None}

# Fields whose value is chosen at random, follows from the model, or is a table
# that the engine computes: a difference from the default says nothing.
NOISE = frozenset(["random_seed", "served_model_name", "nccl_port", "watermark_config"])
NOISY_LISTS = ("cuda_graph_bs", "cuda_graph_config")  # and what begins so

# What the engine fills in for unset flags whatever the model, so that it was
# either not typed or typed without effect.
# Source: the lines of twenty launches of SGLang 0.5.23 on the CPU.
FILLED_IN: Mapping[str, object] = {
    "boundary_reduction": "rs+rsv",
    "dcp_comm_backend": "ag_rs",
    "encoder_transfer_backend": "zmq_to_scheduler",
    "expert_distribution_recorder_buffer_size": 1000,
    "grammar_backend": "xgrammar",
    "hicache_ratio": 2.0,
    "load_balance_method": "round_robin",
    "mamba_full_memory_ratio": 0.9,
    "mm_feature_transport": "cpu",
    "mm_process_config": {},
    "page_size": 1,
    "prefill_decode_interval": 0,
    "speculative_moe_runner_backend": "auto",
    "swa_full_tokens_ratio": 0.8,
}


@dataclass(frozen=True, slots=True)
class ServerArgsDump:
    """The values of one dump, by field.

    `unreadable` are fields whose text is no literal; `complete` is false if the
    line was cut, and then the last field is left out.
    """

    values: Mapping[str, object]
    unreadable: tuple[str, ...] = ()
    complete: bool = True


def find_dump(text: str) -> ServerArgsDump | None:
    """The first `server_args=` dump of a log, or the dump that the text itself is, if any."""
    found = START.search(text) or BARE.match(text)
    if not found:
        return None
    end = text.find("\n", found.end())
    line = text[found.end() : end if end >= 0 else len(text)][:MAX_CHARS]
    values: dict[str, object] = {}
    unreadable: list[str] = []
    # Nearly all fields are nearly the same in each dump: known by their text, up to a comma.
    parts = line.split(",")
    known = [*map(_KNOWN_ITEMS.get, parts[:-1]), None]
    at = number = 0
    while True:
        first, number = number, known.index(None, number)
        values.update(filter(None, known[first:number]))
        at += sum(map(len, parts[first:number])) + number - first
        if (usual := _ITEM.match(line, at)) is not None:
            end = usual.end()
            key, value = _remembered(usual)
            values[key] = value
        elif (item := _item(line, at)) is not None:
            key, text_of, end, complete = item
            try:
                values[key] = _value(text_of.strip())
            except ValueError:
                unreadable.append(key)
            if complete:
                return ServerArgsDump(values, tuple(unreadable), complete=True)
        else:
            return ServerArgsDump(values, tuple(unreadable), complete=False)
        number += line.count(",", at, end)
        at = end


def _remembered(found: re.Match[str]) -> tuple[str, object]:
    """The field and its value that `_ITEM` found."""
    item = found["word"] or found["text"], _usual_value(found["value"])
    text = found[0][:-1]
    if len(text) <= _SHORT and "," not in text:
        if len(_KNOWN_ITEMS) >= _MOST_ITEMS:
            _KNOWN_ITEMS.clear()
        _KNOWN_ITEMS[text] = item
    return item


def _usual_value(text: str) -> object:
    """The value of a text that `_ITEM` takes for one."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] == "'":
        return text[1:-1]
    return float(text) if "." in text else int(text)


def _item(line: str, at: int) -> tuple[str, str, int, bool] | None:
    """Field, text of its value, where the next begins, and whether the dump's bracket closed."""
    key = KEY.match(line, at)
    if key is None:
        return None
    depth, start = 0, key.end()
    for token in TOKEN.finditer(line, start):
        if token["torn"]:  # a string that does not end: the line was cut
            return None
        if token["open"]:
            depth += 1
        elif token["close"]:
            depth -= 1
        if depth < 0 or (depth == 0 and token["comma"]):
            name = key["word"] or key["text"]
            return name, line[start : token.start()], token.end(), depth < 0
    return None


def _value(text: str) -> object:
    """The value of a Python literal; the usual ones do not trouble the parser."""
    if text in _WORDS:
        return _WORDS[text]
    if text == "[]":
        return []
    if (found := _USUAL.fullmatch(text)) is not None:
        if found["whole"]:
            return int(text)
        return float(text) if found["real"] else text[1:-1]
    return literal(text)


def changed_flags(dump: ServerArgsDump, table: FlagTable) -> dict[str, Value]:
    """The flags whose value differs from the table's default, canonical and as text.

    Random values, names that follow from the model and computed lists are left
    out. What is left was typed by the user or resolved by the engine: the line
    does not tell them apart.
    """
    values = dump.values
    flags: dict[str, Value] = {}
    styles, default_of = table.styles, table.defaults.get
    # Most are the default as it stands in the table.
    odd = [
        (field, value, default)
        for field, value in values.items()
        if value is not (default := default_of(field, value))
        and (value != default or type(value) is not type(default))
    ]
    for field, value, _ in odd:
        style, default = styles[field], default_of(field)
        if style == "switch" and value is not True:
            continue
        if _is_noise(field) or (field in FILLED_IN and value == FILLED_IN[field]):
            continue
        if _is_default(value, style, default):
            continue
        if field == "tokenizer_path" and value == values.get("model_path"):
            continue
        if (spec := table.by_field(field)) is not None:
            # A torn or foreign dump may hold what the flag cannot be.
            with suppress(UsageError):
                flags |= table.normal({spec.name: value})
    return flags


def unknown_fields(dump: ServerArgsDump, table: FlagTable) -> tuple[str, ...]:
    """Fields that hold something and are no flag of this table: a fork's, or another version's."""
    values, known = dump.values, table.fields
    foreign = [field for field in values if field not in known]
    return tuple([field for field in foreign if values[field] and not _is_noise(field)])


def _is_noise(field: str) -> bool:
    return field in NOISE or field.startswith(NOISY_LISTS)


def _is_default(value: object, style: Style, default: Default) -> bool:
    if style == "bool-optional":  # unset is resolved to False, unless it is on by default
        return bool(value) == bool(default)
    if style == "switch":
        return value is not True
    if isinstance(value, list | tuple):
        usual = default if isinstance(default, tuple) else ()
        return tuple(value) == usual
    if isinstance(value, bool) or isinstance(default, bool):
        return value is default
    return value == default

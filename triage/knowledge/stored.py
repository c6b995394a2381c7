"""Knowledge as JSON: what the package ships, read without a YAML parser.

In:  causes, or `index.json`; `flags.json`. Out: its text, or causes; a FlagTable.
Not: where they come from (loader.py) or when the files are written (index.py).
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

from triage.core.causes import Cause, Disposition, Origin, Remedy, Role, Severity
from triage.core.flags import FlagTable
from triage.core.flags import table_of as flag_table_of
from triage.core.log.signatures import Causes, Pattern, Table, table_of
from triage.errors import UsageError

INDEX = Path(__file__).with_name("index.json")
CAUSES = Path(__file__).with_name("causes")
FLAGS = Path(__file__).with_name("flags.json")
_STATED = ("say", "disposition")  # of a remedy, also where it is the usual
HEADER = "python -m triage.knowledge.index writes this from the YAML files; do not edit it"


def load_causes() -> Causes:
    """All causes that the package knows, by id."""
    return decode(INDEX.read_text(encoding="utf-8"))


def load_flag_table(version: str = "0.5.23") -> FlagTable:
    """The flags of one SGLang version; raises UsageError for a version without a table."""
    stored = json.loads(FLAGS.read_text(encoding="utf-8"))
    tables = stored["tables"]
    if version not in tables:
        known = ", ".join(tables)
        raise UsageError(
            f"there is no flag table of sglang {version}; known: {known}",
            hint=f"ls {FLAGS.with_suffix('')}",
        )
    return flag_table_of(tables[version], stored["successors"])


def flag_versions() -> tuple[str, ...]:
    """The SGLang versions of which there is a flag table."""
    return tuple(json.loads(FLAGS.read_text(encoding="utf-8"))["tables"])


def flag_successors() -> dict[str, str]:
    """Old flag -> what to write now, "" where nothing took its place."""
    found: dict[str, str] = json.loads(FLAGS.read_text(encoding="utf-8"))["successors"]
    return found


def encode_flags(documents: dict[str, dict[str, Any]], successors: dict[str, str]) -> str:
    """The flag tables of `flag_documents` as JSON, one flag a line."""
    stored = {"generated": HEADER, "successors": successors, "tables": documents}
    text = json.dumps(stored, ensure_ascii=False)
    return text.replace('{"name": ', '\n{"name": ') + "\n"


def encode(causes: tuple[Cause, ...], fixed: Collection[str]) -> str:
    """The index of these causes: their table in a line, then one cause a line.

    `fixed` are the literals of the program itself. Fields that say nothing are left out.
    """
    table = table_of(causes, fixed)
    head = json.dumps({"generated": HEADER, **table._asdict()}, ensure_ascii=False)
    lines = (json.dumps(_short(cause), ensure_ascii=False) for cause in causes)
    return head.removesuffix("}") + ',\n"causes": [\n' + ",\n".join(lines) + "\n]}\n"


def decode(text: str) -> Causes:
    """The causes of an index; the inverse of `encode`. Each is read when it is asked for."""
    head, _, *lines, _ = text.rstrip("\n").split("\n")
    table = json.loads(head.removesuffix(",") + "}")
    return Causes(
        len(lines),
        lambda index: _cause(json.loads(lines[index].removesuffix(","))),
        Table(
            texts=tuple(table["texts"]),
            triggers=tuple((number, tuple(others)) for number, others in table["triggers"]),
            clues=tuple((text, tuple(triggers)) for text, triggers in table["clues"]),
            patterns=tuple(
                Pattern(cause, use, pattern, text, tuple(needs))
                for cause, use, pattern, text, needs in table["patterns"]
            ),
            owners=tuple(map(tuple, table["owners"])),
            near=tuple(table["near"]),
            frequent=tuple(table["frequent"]),
        ),
    )


def _short(cause: Cause) -> dict[str, Any]:
    everything, default = asdict(cause), asdict(Cause(id="", title=""))
    usual = asdict(Remedy(say=""))
    everything["remedies"] = [
        {name: value for name, value in one.items() if value != usual[name] or name in _STATED}
        for one in everything["remedies"]
    ]
    default["remedies"] = []
    return {
        name: value
        for name, value in everything.items()
        if value != default[name] or name in ("id", "title", "role")
    }


def _cause(entry: dict[str, Any]) -> Cause:
    entry["role"] = Role(entry["role"])
    if "severity" in entry:
        entry["severity"] = Severity(entry["severity"])
    entry["remedies"] = tuple(_remedy(remedy) for remedy in entry.get("remedies", ()))
    entry["origins"] = tuple(_origin(origin) for origin in entry.get("origins", ()))
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()
    }
    return Cause(**values)


def _remedy(entry: dict[str, Any]) -> Remedy:
    entry["disposition"] = Disposition(entry["disposition"])
    for name in ("set_flags", "set_env"):
        entry[name] = tuple((key, value) for key, value in entry.get(name, ()))
    for name in ("unset", "unset_env", "needs", "span"):
        entry[name] = tuple(entry.get(name, ()))
    return Remedy(**entry)


def _origin(entry: dict[str, Any]) -> Origin:
    return Origin(**{**entry, "sources": tuple(entry["sources"])})

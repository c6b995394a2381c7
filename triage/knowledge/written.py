"""Knowledge as the JSON that the package ships.

In:  causes; flag documents. Out: the text of `index.json` and of `flags.json`.
Not: reading them again (stored.py) or when they are written (index.py).

The index is one JSON document, and each of its lines can be read alone: a head with what every
log is searched for and the lengths of the other lines, then the clues to it, the patterns, and
the causes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from triage.core.causes import Cause, Remedy
from triage.core.log.signatures import table_of
from triage.knowledge import stored

INDEX, CAUSES, FLAGS = map(Path, (stored.INDEX, stored.CAUSES, stored.FLAGS))
HEADER = "python -m triage.knowledge.index writes this from the YAML files; do not edit it"
_STATED = ("say", "disposition")  # of a remedy, also where it is the usual


def encode_flags(documents: dict[str, dict[str, Any]], successors: dict[str, str]) -> str:
    """The flag tables of `flag_documents` as JSON, one flag a line."""
    tables = {"generated": HEADER, "successors": successors, "tables": documents}
    text = json.dumps(tables, ensure_ascii=False)
    return text.replace('{"name": ', '\n{"name": ') + "\n"


def encode(causes: tuple[Cause, ...], fixed: Collection[str]) -> str:
    """The index of these causes.

    `fixed` are the literals of the program itself. Fields that say nothing are left out.
    """
    made = table_of(causes, fixed)
    patterns = [
        json.dumps((p.cause, p.use, p.pattern, p.text, p.needs), ensure_ascii=False)
        for p in made.patterns
    ]
    table = {name: getattr(made, name) for name in stored.TABLE}
    lines = [
        json.dumps(made.clues, ensure_ascii=False) + ', "patterns": [\n',
        *_with_commas(patterns),
        '], "causes": [\n',
        *_with_commas([json.dumps(_short(cause), ensure_ascii=False) for cause in causes]),
    ]
    lengths = [len(line.encode()) for line in lines]
    head = {
        "generated": HEADER, "count": len(causes), "clued": len(made.clues), **table,
        "lengths": lengths, "clues": [],
    }  # fmt: skip
    return "".join((json.dumps(head, ensure_ascii=False).removesuffix("[]}"), "\n", *lines, "]}\n"))


def _with_commas(values: Sequence[str]) -> list[str]:
    return [value + (",\n" if n < len(values) else "\n") for n, value in enumerate(values, 1)]


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

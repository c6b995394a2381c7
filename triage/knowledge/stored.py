"""Causes as JSON: the index that the package ships, read without a YAML parser.

In:  causes, or `index.json`. Out: the other one of the two.
Not: where causes come from (loader.py) or when the index is written (index.py).
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from triage.core.causes import Cause, Disposition, Remedy, Role, Severity

INDEX = Path(__file__).with_name("index.json")
CAUSES = Path(__file__).with_name("causes")
HEADER = "python -m triage.knowledge.index writes this from causes/*.yaml; do not edit it"

_DEFAULT = asdict(Cause(id="", title=""))


def load_causes() -> tuple[Cause, ...]:
    """All causes that the package knows, by id."""
    return decode(INDEX.read_text(encoding="utf-8"))


def encode(causes: tuple[Cause, ...]) -> str:
    """The index of these causes: JSON, one cause a line, without fields that say nothing."""
    lines = (json.dumps(_short(cause), ensure_ascii=False) for cause in causes)
    return f'{{"generated": {json.dumps(HEADER)},\n"causes": [\n' + ",\n".join(lines) + "\n]}\n"


def decode(text: str) -> tuple[Cause, ...]:
    """The causes of an index; the inverse of `encode`."""
    return tuple(_cause(entry) for entry in json.loads(text)["causes"])


def _short(cause: Cause) -> dict[str, Any]:
    everything = asdict(cause)
    return {
        name: value
        for name, value in everything.items()
        if value != _DEFAULT[name] or name in ("id", "title", "role")
    }


def _cause(entry: dict[str, Any]) -> Cause:
    entry["role"] = Role(entry["role"])
    if "severity" in entry:
        entry["severity"] = Severity(entry["severity"])
    entry["remedies"] = tuple(_remedy(remedy) for remedy in entry.get("remedies", ()))
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()
    }
    return Cause(**values)


def _remedy(entry: dict[str, Any]) -> Remedy:
    entry["disposition"] = Disposition(entry["disposition"])
    for name in ("set_flags", "set_env"):
        entry[name] = tuple((key, value) for key, value in entry[name])
    entry["unset"] = tuple(entry["unset"])
    return Remedy(**entry)

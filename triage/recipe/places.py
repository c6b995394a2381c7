"""Where a key or value of a recipe file stands, for errors that only the whole file shows.

In:  the file, and the keys that lead to the value. Out: UsageError with file and line.
Not: reading values (triage.yamlfile has done so, so the file is known to be sound YAML).
"""

from __future__ import annotations

from pathlib import Path

import yaml

from triage.errors import UsageError

Where = tuple[str | int, ...]


def mistake(path: Path, where: Where, what: str) -> UsageError:
    """The error of a value that fits its model but not the rest of the file."""
    shown = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in where).lstrip(".")
    return UsageError(f"{path}:{_line(path, where)}: {shown}: {what}")


def _line(path: Path, where: Where) -> int:
    """The line, from 1, of the innermost part of `where` that the file has."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    node = yaml.compose(path.read_text(encoding="utf-8"), loader)
    line = 1
    for part in where:
        found = _child(node, part)
        if found is None:
            break
        node, line = found
    return line


def _child(node: object, part: str | int) -> tuple[yaml.Node, int] | None:
    """The node below `node` under this key or index, and the line where it is named."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == part:
                return value, key.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part].start_mark.line + 1
    return None

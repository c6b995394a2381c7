"""The sizes of a model, from its config.json.

In:  the model's folder, overrides as `--json-model-override-args` gives them. Out: Model.
Not: weights, or a model that is named by its hub id and not here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from triage.core.inspection.facts import Model

MOST = 16 << 20  # bytes of a config.json
_TEXT = ("text_config", "language_config", "llm_config", "thinker_config")


def read_model(path: str, overrides: str = "", base: Path = Path()) -> Model:
    """The model's sizes; why there are none is told in the value, too."""
    if not path:
        return Model(why="the command names no model")
    file = base / path / "config.json"
    if not file.is_file():
        return Model(path=path, why=f"{path} has no config.json on this machine")
    try:
        if file.stat().st_size > MOST:
            return Model(path=path, why=f"{file} is too large for a config.json")
        values = json.loads(file.read_bytes())
        changed = json.loads(overrides) if overrides else {}
    except (OSError, ValueError, RecursionError) as error:
        return Model(path=path, why=f"{file} cannot be read: {_short(error)}")
    if not isinstance(values, dict) or not isinstance(changed, dict):
        return Model(path=path, why=f"{file} holds no object")
    values = _merged(values, changed)
    prefix = next((key for key in _TEXT if isinstance(values.get(key), dict)), "")
    inner: dict[str, Any] = {**values, **values[prefix]} if prefix else values
    if "quantization_config" not in inner and isinstance(values.get("quantization_config"), dict):
        inner["quantization_config"] = values["quantization_config"]
    names = values.get("architectures")
    return Model(
        path=path,
        file=str(file),
        architecture=str(names[0]) if isinstance(names, list) and names else "",
        values=inner,
        prefix=f"{prefix}." if prefix else "",
    )


def _merged(values: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    """The values with the overrides on top; objects are merged key by key."""
    merged = dict(values)
    for key, value in changed.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[key] = {**old, **value}
        else:
            merged[key] = value
    return merged


def _short(error: BaseException) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__

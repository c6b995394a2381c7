"""Read knowledge files.

In:  a folder of cause files or of flag tables.
Out: causes by id; documents by version.
Not: judging what the files say (check.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from triage.core.causes import Cause
from triage.errors import UsageError
from triage.knowledge.schema import CauseFile
from triage.yamlfile import load_yaml, plain_yaml

FLAGS = Path(__file__).with_name("flags")


def cause_files(folder: Path) -> tuple[Path, ...]:
    """The cause files of a folder, by name; raises UsageError if there are none."""
    found = tuple(sorted(folder.glob("*.yaml")))
    if not found:
        raise UsageError(f"{folder}: no cause files (*.yaml) here", hint=f"ls {folder}")
    return found


def load_cause_file(path: Path) -> CauseFile:
    """One cause file; its name is its id, or UsageError says so."""
    file = load_yaml(path, CauseFile)
    if file.id != path.stem:
        raise UsageError(
            f"{path}: id: {file.id} must be the file's name, {path.stem}",
            hint=f"mv {path} {path.with_name(file.id)}.yaml",
        )
    return file


def load_causes_from(folder: Path) -> tuple[Cause, ...]:
    """All causes of a folder, by id; raises UsageError with file and line."""
    return tuple(load_cause_file(path).cause() for path in cause_files(folder))


def flag_documents(folder: Path = FLAGS) -> dict[str, dict[str, Any]]:
    """Version -> `triage.flags/1` document, of all flag tables of a folder."""
    found = (plain_yaml(path) for path in sorted(folder.glob("sglang-*.yaml")))
    return {str(document["version"]): document for document in found}


def successors(folder: Path = FLAGS) -> dict[str, str]:
    """Old flag -> what to write in its place, "" where nothing took it."""
    document = plain_yaml(folder / "successors.yaml")
    return {str(name): str(now) for name, now in document["successors"].items()}

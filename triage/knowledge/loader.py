"""Read knowledge files.

In:  a folder of cause files, or the version of a flag table.
Out: causes by id; a FlagTable.
Not: judging what the files say (check.py).
"""

from __future__ import annotations

from pathlib import Path

from triage.core.causes import Cause
from triage.core.flags import FlagTable, table_of
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
        raise UsageError(f"{path}: id: {file.id} must be the file's name, {path.stem}")
    return file


def load_causes_from(folder: Path) -> tuple[Cause, ...]:
    """All causes of a folder, by id; raises UsageError with file and line."""
    return tuple(load_cause_file(path).cause() for path in cause_files(folder))


def load_flag_table(version: str = "0.5.23") -> FlagTable:
    """The flags of one SGLang version; raises UsageError for a version without a table."""
    path = FLAGS / f"sglang-{version}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem.removeprefix("sglang-") for p in FLAGS.glob("*.yaml")))
        raise UsageError(f"there is no flag table of sglang {version}; known: {known}")
    return table_of(plain_yaml(path))

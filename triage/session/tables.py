"""The flag table of the engine that is installed: triage's own of that version, else the engine's.

In:  the command before the flags, its environment and folder. Out: a FlagTable, and what to say.
Not: what a table is used for (triage.core.flags).

A table that was read from an engine is kept in the user's cache, by version and place, so that
the engine is imported for it once.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from triage.core.flags import FlagTable, table_of
from triage.errors import HostError, UsageError, hint
from triage.knowledge.flag_file import flag_document
from triage.knowledge.stored import flag_successors, flag_versions, load_flag_table
from triage.launch.engine_python import engine_python, engine_version
from triage.session.logs import flag_table
from triage.session.resolve import Engine


def engine_table(
    program: Sequence[str],
    env: Sequence[tuple[str, str]] = (),
    cwd: Path = Path(),
    *,
    python: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[FlagTable, tuple[str, ...]]:
    """The table to read flags with, and notes on where it comes from; none where all is usual.

    A version that triage ships a table of is not asked; one that nobody knows is read with the
    newest table, and that is said.
    """
    usual = flag_table()
    python = python or engine_python(program, cwd, dict(env).get("PATH", ""))
    version = engine_version(python) if python else ""
    if python is None:
        return usual, ()
    if version in flag_versions():
        return load_flag_table(version), ()
    named = f"sglang {version}" if version else "the engine, whose version is not known,"
    if (stored := _cached(python, version)) is not None:
        return stored, (f"flags are read with the table that {named} gave of itself",)
    say(f"importing {named} to read its flags, once")
    with Engine(program, env, cwd, python=python) as engine:
        rows, why = engine.flag_rows()
        version, missing = engine.version or version, engine.missing
    if missing:
        return usual, ()  # the launch will say so, and better
    try:
        table = _table(version, rows) if rows else None
    except UsageError as error:
        table, why = None, error.message
    if table is None:
        return usual, (
            f"{named} has no flag table here, and gave none ({why}): flags are read with that of"
            f" {usual.engine} {usual.version}",
        )
    _keep(python, version, rows)
    return table, (f"flags are read with the table that {named} gave of itself",)


def generate(python: Path) -> tuple[str, list[dict[str, Any]], str]:
    """Version, rows and date of the table of the SGLang that this Python has.

    Raises:
        UsageError: there is no such Python.
        HostError: it has no SGLang, or that cannot be asked.
    """
    if not python.exists():
        raise UsageError(f"{python} does not exist", hint=hint("ls", python.parent))
    with Engine((), python=str(python.absolute())) as engine:
        rows, why = engine.flag_rows()
        version, missing = engine.version, engine.missing
    if missing:
        raise HostError(f"{python} has no SGLang", hint=hint(python, "-m", "pip", "show", "sglang"))
    if not rows:
        raise HostError(
            f"the flags of the SGLang of {python} cannot be read: {why}",
            hint=hint(python, "-m", "sglang.launch_server", "--help"),
        )
    _table(version, rows)  # a row of another shape is refused here, not when it is used
    return version, rows, datetime.datetime.now(tz=datetime.UTC).date().isoformat()


def _table(version: str, rows: list[dict[str, Any]]) -> FlagTable:
    return table_of(flag_document(version, "", rows), flag_successors())


def _place(python: str, version: str) -> Path:
    """Where the table of this engine is kept; another one at the same place has another time."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    stamp = ""
    for file in sorted(Path(python).parent.parent.glob("lib/python*/site-packages/sglang*")):
        with suppress(OSError):
            stamp += f"{file.name} {file.stat().st_mtime_ns} "
    key = hashlib.sha256(f"{python} {version} {stamp}".encode()).hexdigest()[:16]
    return root / "triage" / "flags" / f"sglang-{version or 'unknown'}-{key}.json"


def _cached(python: str, version: str) -> FlagTable | None:
    try:
        document = json.loads(_place(python, version).read_text(encoding="utf-8"))
        return table_of(document, flag_successors())
    except (OSError, ValueError, AttributeError, UsageError):
        return None


def _keep(python: str, version: str, rows: list[dict[str, Any]]) -> None:
    """Keep the table if there is a place for it; without, it is read again the next time."""
    path = _place(python, engine_version(python))
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(flag_document(version, "", rows)), encoding="utf-8")

"""Resolve one server command as people have it: the engine if it is there, else the knowledge.

In:  a ServerCommand. Out: Resolved, with what was not taken as given.
Not: the engine's side (triage.launch.inside).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from triage.core.config import Config, ServerCommand
from triage.core.constraints import judged
from triage.core.diagnosis import Diagnosis
from triage.core.flags import FlagTable
from triage.core.hide import hide_config
from triage.core.resolution import Override, Resolution, overrides
from triage.errors import UsageError, hint
from triage.launch.resolver import EACH_S
from triage.render.resolution_text import moved_besides
from triage.session.logs import flag_table
from triage.session.resolve import Engine, diagnosis_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A resolution with what a person wants to know of it; secrets of the command hidden."""

    resolution: Resolution
    config: Config
    diagnosis: Diagnosis | None
    overrides: tuple[Override, ...] = ()
    moved: Mapping[str, object]
    notes: tuple[str, ...] = ()
    import_s: float = 0.0
    asked: bool = True  # the engine itself


def resolve_command(
    command: ServerCommand, *, python: str | None = None, each_s: float = EACH_S
) -> Resolved:
    """What the engine makes of the command, in its own environment and folder.

    Raises:
        UsageError: a part of the command is not known here, or the Python does not exist.
        HostError: this machine has no free block of ports.
    """
    for part, written in command.unresolved:
        if part not in ("--host", "--port"):
            raise UsageError(
                f"{part} holds {written}, and what that stands for is not known here",
                hint="triage config CMDFILE",
            )
    if python is not None and not Path(python).exists():
        raise UsageError(f"{python} does not exist", hint=hint("ls", Path(python).parent))
    table = flag_table()
    config = command.config
    program = () if command.wrapper else command.program
    with Engine(program, cwd=Path(command.cwd or "."), python=python) as engine:
        resolution = engine.resolve(config)
        import_s, asked, why = engine.import_s, not engine.why, engine.why
    if command.wrapper and python is None:
        why = "the command starts a container"
    if why:
        resolution = by_knowledge(config, table, why)
    return _resolved(resolution, config, table, command, import_s=import_s, asked=asked)


def by_knowledge(config: Config, table: FlagTable, why: str) -> Resolution:
    """What triage's own rules say, where the engine cannot be asked; `why` says why not."""
    from triage.knowledge.rules import load_rules

    found = judged(config, load_rules(table.version), table, table.version)
    if found.verdict == "unknown":
        return replace(found, reason=f"the engine cannot be asked ({why}), and {found.reason}")
    return found


def _resolved(
    resolution: Resolution,
    config: Config,
    table: FlagTable,
    command: ServerCommand,
    *,
    import_s: float,
    asked: bool,
) -> Resolved:
    defaults = {spec.field: (spec.name, spec.default) for spec in table.specs.values()}
    return Resolved(
        resolution=resolution,
        config=hide_config(config),
        diagnosis=diagnosis_of(resolution),
        overrides=overrides(config, resolution, table),
        moved=moved_besides(resolution, config, defaults),
        notes=command.notes,
        import_s=import_s,
        asked=asked,
    )

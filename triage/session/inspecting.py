"""Inspect a server command: the engine and the model that it names, without running either.

In:  a ServerCommand. Out: Inspection.
Not: the checks (triage.core.inspection), or asking the engine itself (resolving.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from triage.core.config import Config, ServerCommand
from triage.core.inspection.checks import inspect
from triage.core.inspection.facts import Inspection, Installed, Model
from triage.errors import HostError, UsageError, hint
from triage.installed import installed_engine, read_model
from triage.launch.engine_python import engine_python
from triage.session.search import Search


def inspect_command(
    command: ServerCommand, *, python: Path | None = None, model: Path | None = None
) -> Inspection:
    """What cannot work of this command, as far as disk tells it.

    Args:
        command: As it was read.
        python: The Python that has the engine, if the command does not tell.
        model: The model's folder, if it lies elsewhere than the command says.

    Raises:
        UsageError: the named Python does not exist.
        HostError: the command starts a container, and no Python was named.
    """
    if python is not None and not python.exists():
        raise UsageError(f"{python} does not exist", hint=hint("ls", python.parent))
    if command.wrapper and python is None:
        raise HostError(
            "the command starts a container: its engine is not on this machine's disk",
            hint="triage inspect --python /path/to/python CMDFILE",
        )
    cwd = Path(command.cwd or ".")
    config = command.config
    found = engine_of(command.program, config.env_values(), cwd, python=python)
    return inspect(found, model_of(config, cwd, model=model), config)


def engine_of(
    program: Sequence[str],
    env: Mapping[str, str],
    cwd: Path = Path(),
    *,
    python: Path | None = None,
) -> Installed:
    """The engine that these words start, read from disk; folders of PYTHONPATH come first."""
    named = str(python) if python else engine_python(program, cwd, env.get("PATH", ""))
    if named is None:
        return Installed(why="the command does not tell which Python runs the engine")
    path = env.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    extra = [cwd / word for word in path.split(os.pathsep) if word]
    return installed_engine(Path(named), extra)


def foreseen(search: Search) -> tuple[str, ...]:
    """What is known to fail of the wanted configuration, and not of its baseline, a line each.

    Only where the engine lies on this machine's disk: not for a container or a simulation.
    """
    recipe = search.recipe
    if search.replay is not None or recipe.target != "process":
        return ()
    env = dict(recipe.env) | recipe.problem.baseline.env_values()
    found = engine_of(recipe.command, env, recipe.cwd)
    if found.why:
        return ()
    told: list[list[str]] = []
    for keys in (frozenset[str](), recipe.problem.keys()):
        config = recipe.problem.config(keys)
        inspection = inspect(found, model_of(config, recipe.cwd), config)
        told.append([f"{f.check}: {f.say} ({f.where[0]})" for f in inspection.findings if f.sure])
    return tuple(line for line in told[1] if line not in told[0])


def model_of(config: Config, cwd: Path = Path(), *, model: Path | None = None) -> Model:
    """The model that a configuration names, with its overrides."""
    path = config.get("model-path")
    overrides = config.get("json-model-override-args")
    return read_model(
        str(model) if model else path if isinstance(path, str) else "",
        overrides if isinstance(overrides, str) else "",
        cwd,
    )

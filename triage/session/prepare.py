"""From a recipe, or a good and a bad command, to a search that can be launched.

In:  paths and overrides of the command line. Out: Search.
Not: launching (search.py).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from triage.command import read_command_file
from triage.core.config import ServerCommand
from triage.core.flags import FlagTable
from triage.core.search.rungs import RUNGS
from triage.errors import UsageError, hint
from triage.recipe import Recipe, load_recipe, recipe_from_commands
from triage.session.logs import flag_table
from triage.session.search import Replay, Search
from triage.session.tables import engine_table

# Each launch gets an address of its own, so these may stay unknown.
_OURS = ("--host", "--port")


def prepare(
    recipe_file: Path | None,
    *,
    stored: Search | None = None,
    good: Path | None = None,
    bad: Path | None = None,
    trials: int | None = None,
    hours: float | None = None,
    engine: str | None = None,
    landscape: Path | None = None,
    speed: float | None = None,
    goal: str | None = None,
    audit: bool = False,
    rungs: str | None = None,
    target: str | None = None,
    nodes: int | None = None,
) -> Search:
    """The search that these options ask for; what the options leave out the recipe says.

    `stored` is the search of a session that is gone on with, in place of a recipe.

    Raises:
        UsageError: they contradict each other, or a file is wrong.
        HostError: the unit that the recipe names cannot be read.
    """
    if stored is not None:
        recipe, sources = stored.recipe, dict(stored.sources)
    else:
        recipe, sources = _recipe(recipe_file, good, bad)
    simulated = "replay" in (engine, recipe.engine)
    if simulated and sources and target is None and stored is None:
        target = "process"  # of the user's command a simulated launch takes only the flags
    recipe = replace(recipe, target=target or recipe.target)
    table, told = _table_of(recipe, simulated=simulated)
    if stored is None and table is not flag_table():
        again, sources = _recipe(recipe_file, good, bad, table=table)
        recipe = replace(again, target=recipe.target)
    given = {"recipe": recipe_file, "good": good, "bad": bad}
    origin = {role: path for role, path in given.items() if path is not None}
    if stored is not None:
        origin = dict(stored.origin)
    problem = recipe.problem
    problem = replace(
        problem,
        budget_trials=problem.budget_trials if trials is None else trials,
        budget_s=problem.budget_s if hours is None else hours * 3600,
        goal=goal or problem.goal,
        audit=audit or problem.audit,
    )
    recipe = replace(recipe, problem=problem, engine=engine or recipe.engine)
    recipe = replace(recipe, rungs=_rungs(rungs, recipe.rungs))
    if recipe.target == "process" and recipe.container and sources and not simulated:
        raise UsageError(
            "the command that works starts a container, and as a process it would not be the same",
            hint="triage bisect --target container --good WORKING --bad FAILING",
        )
    replay = stored.replay if stored else None
    if replay is None and recipe.engine == "replay":
        played = landscape or recipe.landscape
        if played is None:
            raise UsageError(
                "the simulated engine needs a landscape",
                hint="triage bisect RECIPE --engine replay --landscape FILE",
            )
        if not played.is_file():
            raise UsageError(f"{played} does not exist", hint=hint("ls", played.parent))
        replay = Replay(landscape=played, speed=speed or recipe.speed)
    elif replay is not None:
        replay = Replay(landscape=landscape or replay.landscape, speed=speed or replay.speed)
    elif landscape is not None or speed is not None:
        raise UsageError(
            "--landscape and --speed are for the simulated engine",
            hint="triage bisect RECIPE --engine replay --landscape FILE",
        )
    recipe = replace(recipe, cwd=recipe.cwd.absolute(), at_once=nodes or recipe.at_once)
    check_room(recipe, simulated=replay is not None)
    recipe = _with_limits(recipe, table, told)
    search = Search(recipe=recipe, replay=replay, sources=sources, origin=origin)
    _ = search.setup  # what is missing for the target is said before anything is launched
    return search


def check_room(recipe: Recipe, *, simulated: bool) -> None:
    """Refuse launches at the same time that would be in each other's way.

    Raises:
        UsageError: they would share GPUs, or it is not known whether they do.
    """
    many, slots = recipe.at_once, len(recipe.devices)
    if many == 1:
        return
    if "twin" in recipe.rungs:
        raise UsageError(
            "launches with a smaller model are made one at a time, so not on several nodes",
            hint="triage bisect RECIPE --nodes 1",
        )
    if recipe.target == "slurm" or simulated or _on_cpu(recipe):
        return
    if not slots:
        raise UsageError(
            f"{many} launches at the same time would share this machine's GPUs, and the recipe "
            "does not say which are whose",
            hint="triage bisect RECIPE --nodes 1"
            "  # or in the recipe launch: {devices: [[0, 1, 2, 3], [4, 5, 6, 7]]}",
        )
    if slots < many:
        raise UsageError(
            f"the recipe has devices for {slots} launches at the same time, not for {many}",
            hint=f"triage bisect RECIPE --nodes {slots}",
        )


def _on_cpu(recipe: Recipe) -> bool:
    """Whether every launch of the recipe stays off the GPUs, by its own --device."""
    problem = recipe.problem
    told = problem.baseline.get("device") == "cpu"
    return told and all(item.change.name != "device" for item in problem.choices())


def _table_of(recipe: Recipe, *, simulated: bool) -> tuple[FlagTable, tuple[str, ...]]:
    """The table of the engine that will be launched, and what to say of it."""
    if simulated or recipe.target in {"container", "slurm"}:  # no engine of this machine's
        return flag_table(), ()
    return engine_table(recipe.command, recipe.env, recipe.cwd)


def _rungs(text: str | None, usual: tuple[str, ...]) -> tuple[str, ...]:
    """The rungs that a list with commas names, in the order in which they are climbed."""
    if text is None:
        return usual
    named = {word.strip() for word in text.split(",")}
    if unknown := sorted(named - set(RUNGS)):
        raise UsageError(
            f"there is no rung {unknown[0]!r}: {', '.join(RUNGS)}",
            hint="triage bisect --rungs resolution,full RECIPE",
        )
    return tuple(rung for rung in RUNGS if rung in named)


def _recipe(
    recipe_file: Path | None,
    good: Path | None,
    bad: Path | None,
    *,
    table: FlagTable | None = None,
) -> tuple[Recipe, dict[str, str]]:
    table = table or flag_table()
    if recipe_file is not None:
        if good is not None or bad is not None:
            raise UsageError(
                "give a recipe, or --good and --bad, not both", hint="triage bisect --help"
            )
        return load_recipe(recipe_file, table), {}
    if good is None or bad is None:
        raise UsageError(
            "a search needs a recipe, or a command that works and one that does not",
            hint="triage bisect --good WORKING --bad FAILING",
        )
    if "-" in (str(good), str(bad)):
        raise UsageError(
            "a search needs its two commands in files, for the runbook changes one of them",
            hint="triage bisect --good WORKING --bad FAILING",
        )
    works, fails = read_command_file(good, table), read_command_file(bad, table)
    for path, command in ((good, works), (bad, fails)):
        check_launchable(path, command)
    if not works.wrapper and not works.program:
        # Of the bad one only the flags are used, so it may be a log or a config file.
        mend = hint("sed", "-i", "1s/^/python -m sglang.launch_server /", good)
        look = hint("triage", "config", good)
        raise UsageError(
            f"{good} sets flags but names no program to launch",
            hint=mend if works.form in {"argv", "shell"} else look,
        )
    recipe = recipe_from_commands(works, fails, f"{good.stem}-to-{bad.stem}")
    return recipe, {"good": works.text, "bad": fails.text}


def check_launchable(path: Path, command: ServerCommand) -> None:
    """Refuse a command that is read well and that cannot be launched as it is meant."""
    for part, written in command.unresolved:
        if part not in _OURS:
            raise UsageError(
                f"{path}: {part} holds {written}, and what that stands for is not known here",
                hint=f"grep -nF {shlex.quote(written)} {shlex.quote(str(path))}"
                "  # then write its value there",
            )


def _with_limits(recipe: Recipe, table: FlagTable, told: Sequence[str]) -> Recipe:
    """The recipe with a note on each of its parts that has no effect in this version."""
    notes = [*recipe.notes, *told]
    if recipe.engine_version != table.version and not told:
        notes.append(
            f"engine_version {recipe.engine_version}: flags are read with the table of"
            f" {table.engine} {table.version}"
        )
    return replace(recipe, notes=tuple(dict.fromkeys(notes)))

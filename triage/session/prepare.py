"""From a recipe, or a good and a bad command, to a search that can be launched.

In:  paths and overrides of the command line. Out: Search.
Not: launching (search.py).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from triage.command import read_command_file
from triage.errors import HostError, UsageError
from triage.recipe import Recipe, load_recipe, recipe_from_commands
from triage.session.logs import flag_table
from triage.session.search import Replay, Search


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
) -> Search:
    """The search that these options ask for; what the options leave out the recipe says.

    `stored` is the search of a session that is gone on with, in place of a recipe.

    Raises:
        UsageError: they contradict each other, or a file is wrong.
        HostError: this version cannot launch what they ask for.
    """
    if stored is not None:
        recipe, sources = stored.recipe, dict(stored.sources)
    else:
        recipe, sources = _recipe(recipe_file, good, bad)
    given = {"recipe": recipe_file, "good": good, "bad": bad}
    origin = {role: path for role, path in given.items() if path is not None}
    if stored is not None:
        origin = dict(stored.origin)
    problem = recipe.problem
    if trials is not None:
        problem = replace(problem, budget_trials=trials)
    if hours is not None:
        problem = replace(problem, budget_s=hours * 3600)
    recipe = replace(recipe, problem=problem, engine=engine or recipe.engine)
    if recipe.target != "process":
        raise HostError(
            f"this version launches processes only, and the recipe asks for {recipe.target}",
            hint=f"edit launch.target in {recipe_file}: process",
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
            raise UsageError(f"{played} does not exist", hint=f"ls {played.parent}")
        replay = Replay(landscape=played, speed=speed or recipe.speed)
    elif landscape is not None or speed is not None:
        raise UsageError(
            "--landscape and --speed are for the simulated engine",
            hint="triage bisect RECIPE --engine replay --landscape FILE",
        )
    return Search(recipe=_with_limits(recipe), replay=replay, sources=sources, origin=origin)


def _recipe(
    recipe_file: Path | None, good: Path | None, bad: Path | None
) -> tuple[Recipe, dict[str, str]]:
    if recipe_file is not None:
        if good is not None or bad is not None:
            raise UsageError(
                "give a recipe, or --good and --bad, not both", hint="triage bisect --help"
            )
        return load_recipe(recipe_file, flag_table()), {}
    if good is None or bad is None:
        raise UsageError(
            "a search needs a recipe, or a command that works and one that does not",
            hint="triage bisect --good WORKING --bad FAILING",
        )
    table = flag_table()
    works, fails = read_command_file(good, table), read_command_file(bad, table)
    for path, command in ((good, works), (bad, fails)):
        if command.wrapper:
            raise HostError(
                f"{path} starts a container, and this version launches processes only",
                hint=f"triage config {path}  # then give the command inside the container",
            )
        if not command.program:
            raise UsageError(
                f"{path} sets flags but names no program to launch",
                hint=f"triage bisect --good {good} --bad {bad} --save recipe.yaml",
            )
    recipe = recipe_from_commands(works, fails, f"{good.stem}-to-{bad.stem}")
    return recipe, {"good": works.text, "bad": fails.text}


def _with_limits(recipe: Recipe) -> Recipe:
    """The recipe with a note on each of its parts that this version does not search."""
    notes = list(recipe.notes)
    if recipe.ranges:
        notes.append("ranges are not searched by this version; their flags stay as they are")
    if recipe.repairs:
        notes.append("repairs are not searched by this version; none of them is added")
    if recipe.problem.goal != "best":
        notes.append(f"goal {recipe.problem.goal} is searched like best in this version")
    return replace(recipe, notes=tuple(notes))

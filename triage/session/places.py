"""Where the launches of a recipe are made, from its words.

In:  a Recipe, the commands that the user gave. Out: a Place, and notes on what it changes.
Not: launching there (triage.launch).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from triage.core.config import Config
from triage.core.launch import Container, Job, Place, Process, Unit
from triage.core.redact import redact_words
from triage.errors import HostError, UsageError, hint
from triage.recipe import Recipe


def place_of(recipe: Recipe, sources: Mapping[str, str], landscape: Path | None) -> Place:
    """The place; `landscape` is what the simulated engine plays, if it is launched.

    Raises:
        UsageError: the recipe does not say enough for its target.
        HostError: its unit cannot be read.
    """
    match recipe.target:
        case "systemd":
            return _unit(recipe, sources.get("good", ""), simulated=landscape is not None)
        case "container":
            if not recipe.container:
                raise UsageError(
                    "the target container needs the words of docker run up to the image",
                    hint="triage bisect RECIPE  # with launch.container: [docker, run, IMAGE]",
                )
            if landscape is None:
                return Container(run=recipe.container)
            return Container(run=_with_ourselves(recipe.container, landscape))
        case "slurm":
            return Job(nodes=recipe.nodes, options=recipe.sbatch)
        case _:
            return Process()


def place_facts(recipe: Recipe) -> list[object]:
    """What of the place a verdict depends on; nothing for a process."""
    if recipe.target == "process":
        return []
    return [recipe.target, str(recipe.unit), [*recipe.container], recipe.nodes, [*recipe.sbatch]]


def listening_address(place: Place) -> str:
    """The address that a server of ours listens on: all of a node's, if it is not this machine."""
    return "0.0.0.0" if isinstance(place, Job) else "127.0.0.1"  # noqa: S104  a node's own network


def shown_before(place: Place) -> tuple[str, ...]:
    """The words that stand before the server's command at this place, secrets hidden."""
    match place:
        case Unit():
            return ("systemd-run", "--unit=triage", "--")
        case Container(run=run):
            return redact_words(run)
        case Job(nodes=nodes, options=options):
            return ("srun", f"--nodes={nodes}", "--ntasks-per-node=1", *redact_words(options))
        case _:
            return ()


def placed(place: Place, config: Config, sources: Mapping[str, str]) -> Place:
    """The place for one launch: a unit that is launched whole has the config written into it."""
    if not (isinstance(place, Unit) and place.whole):
        return place
    from triage.command import read_command, write_command
    from triage.session.logs import flag_table

    table = flag_table()
    text = write_command(read_command(sources["good"], table), config, table)
    return Unit(text=text, whole=True)


def notes_of(recipe: Recipe) -> tuple[str, ...]:
    """What a launch at this place does not do as the user's own command would."""
    match recipe.target:
        case "container":
            return (
                "the containers get the host's network, a name of their own and no restart, so"
                " that their listener can be seen",
            )
        case "systemd":
            return (
                "the units are copies without Restart=, ExecStartPost= and [Install]; the"
                " user's own unit is not touched",
            )
        case "slurm":
            return ("on a node without python3, who listens there is told by its answers only",)
        case _:
            return ()


def _unit(recipe: Recipe, good: str, *, simulated: bool) -> Unit:
    from triage.command.unit import IS_UNIT

    if recipe.unit is not None:
        try:
            return Unit(text=recipe.unit.read_text(encoding="utf-8", errors="replace"))
        except OSError as error:
            raise HostError(
                f"{recipe.unit} cannot be read: {error.strerror}",
                hint=hint("ls", "-l", recipe.unit),
            ) from error
    if IS_UNIT.search(good):
        return Unit(text=good, whole=not simulated)
    return Unit()


def _with_ourselves(run: tuple[str, ...], landscape: Path) -> tuple[str, ...]:
    """The same container with the simulated engine in it: our Python, our code, the landscape."""
    folders = {sys.prefix, sys.base_prefix, str(Path(__file__).parents[2])}
    folders |= {str(landscape.absolute().parent)}
    mounts = [word for one in sorted(folders) for word in ("--volume", f"{one}:{one}:ro")]
    return (*run[:-1], *mounts, run[-1])

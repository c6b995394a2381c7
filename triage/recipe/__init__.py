"""A recipe: what is known to start, what is wanted on top, and how to launch it.

In:  a recipe file, or a good and a bad command.
Out: Recipe; `dump_recipe` writes one that `load_recipe` reads back.
Not: searching (triage.core.search.plan) or launching (triage.launch).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from triage.core.config import ServerCommand, SetFlag
from triage.core.handover.judged import Assumption, Doubt, Worth
from triage.core.launch import Patience
from triage.core.trials import Noise, Problem

if TYPE_CHECKING:
    from triage.core.flags import FlagTable

__all__ = [
    "Confirm",
    "Figure",
    "Noise",
    "Range",
    "Recipe",
    "Repair",
    "Workload",
    "dump_recipe",
    "load_recipe",
    "recipe_from_commands",
]


# The engine is asked before it is launched; a launch with a smaller model must be asked for.
DEFAULT_RUNGS = ("static", "resolution", "full")


@dataclass(frozen=True, slots=True)
class Repair:
    """A change that may be added if it is needed, what it costs, and the weight of that."""

    change: SetFlag
    cost: str
    price: float = 1.0


@dataclass(frozen=True, slots=True)
class Range:
    """A numeric flag that may go from `start` to `end` in steps of `step`.

    `price` is the weight of the whole way; each step costs its share.
    """

    flag: str
    start: float
    end: float
    step: float
    price: float = 1.0


@dataclass(frozen=True, slots=True)
class Confirm:
    """What a confirmation asks of the server beside its short prompts.

    `requests` are sent at each of the `concurrency` levels, with answers of `tokens`
    tokens; without a level there is no load. With `any_text` the answers need not be
    text: the weights are random.
    """

    requests: int = 8
    concurrency: tuple[int, ...] = ()
    tokens: int = 64
    any_text: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A throughput that somebody measured, of all sequences; `without` names flags it lacked."""

    concurrency: int
    tokens_per_s: float
    source: str
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Workload:
    """What the server is for, for `triage advise`; `gpu` is "" if the recipe does not say it."""

    gpu: str = ""
    gpus: int = 0
    input_tokens: int = 1024
    output_tokens: int = 1024
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One bisection as the user asks for it.

    `target` is where a launch is made: process, systemd, container or slurm; the four fields
    behind it say how (schema.py), and are kept whatever the target is.
    `takes` are the seconds of a launch that starts and of one that fails, for the forecast.
    `at_once` launches are made at the same time; `devices` are the GPUs of each, where they
    share a machine.
    `command` is what stands before the server's flags. `cwd` and `landscape`
    are resolved against the recipe's folder. `repairs` and `ranges` are what
    the problem's repairs were made from. `engine_version` chooses no other flag table.
    `assumptions`, `reported`, `worth` and `not_shown` are for the runbook: what was taken for
    granted, figures that others reported, what is worth more hours, and claims that the
    evidence does not show. `rungs` are the sorts of trials that a search may spend.
    `notes` say what the reader had to assume.
    """

    name: str
    problem: Problem
    engine: str = "sglang"
    engine_version: str = "0.5.23"
    target: str = "process"
    unit: Path | None = None
    container: tuple[str, ...] = ()
    nodes: int = 1
    sbatch: tuple[str, ...] = ()
    devices: tuple[tuple[int, ...], ...] = ()
    at_once: int = 1
    command: tuple[str, ...] = ("python", "-m", "sglang.launch_server")
    env: tuple[tuple[str, str], ...] = ()
    cwd: Path = Path()
    patience: Patience = field(default_factory=Patience)
    takes: tuple[float | None, float | None] = (None, None)
    repairs: tuple[Repair, ...] = ()
    ranges: tuple[Range, ...] = ()
    confirm: Confirm = Confirm()
    assumptions: tuple[Assumption, ...] = ()
    workload: Workload = Workload()
    reported: tuple[str, ...] = ()
    worth: tuple[Worth, ...] = ()
    not_shown: tuple[Doubt, ...] = ()
    landscape: Path | None = None
    speed: float = 1.0
    rungs: tuple[str, ...] = DEFAULT_RUNGS
    notes: tuple[str, ...] = ()


def load_recipe(path: Path, table: FlagTable) -> Recipe:
    """Read and check a recipe; flag names in any spelling that the engine accepts.

    Raises:
        UsageError: it cannot be read, has an unknown key, or its parts contradict
            each other; with file, line and where possible a suggestion.
    """
    from triage.recipe.reading import read_recipe  # noqa: PLC0415  pydantic is slow to import

    return read_recipe(path, table)


def recipe_from_commands(good: ServerCommand, bad: ServerCommand, name: str) -> Recipe:
    """The recipe of a command that starts and one that does not.

    Raises:
        UsageError: the two set the same.
    """
    from triage.recipe.commands import compare_commands  # noqa: PLC0415

    return compare_commands(good, bad, name)


def dump_recipe(recipe: Recipe) -> str:
    """The recipe as a YAML file. Paths are written absolute; `notes` become comments."""
    from triage.recipe.writing import write_recipe  # noqa: PLC0415

    return write_recipe(recipe)

"""The keys of a recipe file, as pydantic models.

In:  nothing. Out: RecipeFile, for triage.yamlfile.load_yaml.
Not: what the flags mean and whether the parts go together (reading.py).
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from triage.core.trials import CHOICES

Text = Annotated[str, Field(min_length=1, max_length=10_000)]
Share = Annotated[float, Field(ge=0, lt=1)]
Price = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Duration = str | int | float
Rung = Literal["static", "resolution", "twin", "full"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class LaunchPart(_Strict):
    """How the server is started; triage adds the flags behind `command`."""

    target: Literal["process", "systemd", "container", "slurm"] = "process"
    unit: Text | None = None  # systemd: the unit whose settings each launch takes over
    container: tuple[Text, ...] = ()  # container: the words of docker run up to the image
    nodes: Annotated[int, Field(ge=1, le=1024)] = 1  # slurm: with one task on each
    sbatch: tuple[Text, ...] = ()  # slurm: options such as --partition=gpu
    devices: tuple[tuple[Annotated[int, Field(ge=0, le=1023)], ...], ...] = ()  # budget.nodes > 1
    command: Annotated[tuple[Text, ...], Field(min_length=1)] = (
        "python",
        "-m",
        "sglang.launch_server",
    )
    env: dict[Text, str | int | float] = Field(default_factory=dict)
    cwd: Text = "."
    patience: dict[str, Duration] = Field(default_factory=dict)
    takes: dict[Literal["starts", "fails"], Duration] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _apart(self) -> Self:
        every = [gpu for slot in self.devices for gpu in slot]
        if len(set(every)) != len(every) or not all(self.devices):
            raise ValueError("devices: each launch at the same time needs GPUs of its own")
        return self


class BaselinePart(_Strict):
    """The configuration that is known to start."""

    flags: dict[Text, JsonValue]
    env: dict[Text, str | int | float] = Field(default_factory=dict)


class WantedPart(_Strict):
    """One change that the user wants: a flag, a variable, or a baseline's flag left out."""

    flag: Text | None = None
    env: Text | None = None
    unset: Text | None = None  # a flag of the baseline, or env:NAME
    value: JsonValue = None
    weight: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] = 1.0

    @model_validator(mode="after")
    def _one_name(self) -> Self:
        if sum(name is not None for name in (self.flag, self.env, self.unset)) != 1:
            raise ValueError("needs one of flag, env and unset")
        if self.unset is not None and self.value is not None:
            raise ValueError("what is left out has no value")
        if self.env is not None and not isinstance(self.value, str | int | float):
            raise ValueError("a variable needs a value, as text in quotes")
        if self.env is not None and isinstance(self.value, bool):
            raise ValueError('a variable\'s value is text: write "true" or "false" in quotes')
        return self


class RepairPart(_Strict):
    """A change that may be added if it is needed, with what it costs."""

    flag: Text
    value: JsonValue = None
    cost: Text
    price: Price = 1.0  # in the unit of the wanted weights


class RangePart(_Strict):
    """A value that may be lowered, or raised, step by step."""

    flag: Text
    from_: float = Field(alias="from")
    to: float
    step: Annotated[float, Field(gt=0)]
    price: Price = 1.0  # of the whole way, in the unit of the wanted weights


class PinPart(_Strict):
    """A flag that every launch has with this value, the baseline too."""

    flag: Text
    value: JsonValue = None


class RequiresPart(_Strict):
    """An item makes sense only together with another item or a baseline flag."""

    flag: Text
    needs: Text


class BudgetPart(_Strict):
    """What the search may spend."""

    trials: Annotated[int, Field(ge=1, le=10_000)] = 24
    hours: Annotated[float, Field(gt=0, le=10_000)] = 2.0
    nodes: Annotated[int, Field(ge=1, le=4)] = 1  # launches at the same time


class NoisePart(_Strict):
    """How often a launch of a failing configuration starts, and of a working one fails."""

    miss: Share = 0.0
    transient: Share = 0.0


class ConfirmPart(_Strict):
    """What a confirmation asks of the server."""

    requests: Annotated[int, Field(ge=1, le=100_000)] = 8  # at each concurrency
    concurrency: tuple[Annotated[int, Field(ge=1, le=4096)], ...] = ()  # none: no load
    tokens: Annotated[int, Field(ge=1, le=100_000)] = 64  # of each answer under load
    text: Literal["judged", "any"] = "judged"  # any: the weights are random


class AssumptionPart(_Strict):
    """What is taken for granted, on which evidence, and whether it was verified."""

    say: Text
    evidence: str = ""
    verified: Text = "no"


class WorthPart(_Strict):
    """Whether an item is worth more hours, why, and what would change that."""

    item: Text
    say: Text
    because: tuple[Text, ...] = ()
    basis: str = ""
    revisit: str = ""


class ClaimPart(_Strict):
    """A claim of others that the evidence does not show."""

    claim: Text
    why: Text
    would_show: str = ""


class FigurePart(_Strict):
    """A throughput that somebody measured."""

    concurrency: Annotated[int, Field(ge=1, le=100_000)]
    tokens_per_s: Price
    source: Text
    without: tuple[Text, ...] = ()


class WorkloadPart(_Strict):
    """What the server is for, for `triage advise`."""

    gpu: Annotated[str, Field(max_length=200)] = ""
    gpus: Annotated[int, Field(ge=0, le=64)] = 0
    input_tokens: Annotated[int, Field(ge=1, le=10_000_000)] = 1024
    output_tokens: Annotated[int, Field(ge=1, le=10_000_000)] = 1024
    figures: tuple[FigurePart, ...] = ()


class RecipeFile(_Strict):
    """A recipe as it is written."""

    schema_: Literal["triage.recipe/1"] = Field(alias="schema")
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$", max_length=100)]
    engine: Literal["sglang", "replay"] = "sglang"
    engine_version: Text = "0.5.23"
    launch: LaunchPart = LaunchPart()
    baseline: BaselinePart
    wanted: Annotated[tuple[WantedPart, ...], Field(max_length=CHOICES)] = ()
    repairs: tuple[RepairPart, ...] = ()
    ranges: tuple[RangePart, ...] = ()
    pin: tuple[Text | PinPart, ...] = ()
    requires: tuple[RequiresPart, ...] = ()
    not_both: tuple[tuple[Text, Text], ...] = ()
    goal: Literal["best", "first", "all"] = "best"
    noise: NoisePart = NoisePart()
    budget: BudgetPart = BudgetPart()
    confirm: ConfirmPart = ConfirmPart()
    assumptions: tuple[Text | AssumptionPart, ...] = ()
    workload: WorkloadPart = WorkloadPart()
    reported: tuple[Text, ...] = ()
    worth: tuple[WorthPart, ...] = ()
    not_shown: tuple[ClaimPart, ...] = ()
    landscape: Text | None = None
    speed: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    rungs: Annotated[tuple[Rung, ...], Field(min_length=1)] = ("static", "resolution", "full")

"""Read what is known of GPUs and models: hardware.yaml, models.yaml, options.yaml.

In:  the files beside this module, or others of the same form.
Out: GpuModel, Node and Model values of the core; each figure keeps its source.
Not: counting (triage.core.physics) or a model's own config.json (triage.core.physics.config_json).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from triage.core.advice.values import Alternative, Chance, Constant, Rules
from triage.core.physics.model import Latent, Model, Widths
from triage.core.physics.node import GpuModel, Node, Reach
from triage.yamlfile import load_yaml

FOLDER = Path(__file__).parent
Text = Annotated[str, Field(min_length=1)]
Positive = Annotated[float, Field(gt=0)]
Whole = Annotated[int, Field(ge=0)]
Format = Literal["int4", "nvfp4", "mxfp4", "fp8", "bf16"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Quantity(_Strict):
    """A figure, what it may as well be, and who says so."""

    value: Annotated[float, Field(ge=0)]
    source: Text
    low: float | None = None
    high: float | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        low = self.value if self.low is None else self.low
        high = self.value if self.high is None else self.high
        if not low <= self.value <= high:
            raise ValueError("must be between low and high")
        return self


class GpuPart(_Strict):
    """One GPU model of hardware.yaml."""

    name: Text
    match: Annotated[tuple[Text, ...], Field(min_length=1)]
    family: Literal["ampere", "hopper", "blackwell", "blackwell-pcie"]
    hbm_bytes: Quantity
    hbm_bytes_per_s: Quantity
    link_bytes_per_s: Quantity
    bf16_operations_per_s: Quantity
    fp8_operations_per_s: Quantity
    fp4_operations_per_s: Quantity
    power_limit_w: Quantity
    multicast: bool


class ReachPart(_Strict):
    """What kernels reach, whatever the family."""

    layer_s: Quantity
    eager_factor: Quantity
    dense_share: Quantity
    kv_share: Quantity
    link_share: Quantity
    operations_share: Quantity
    custom_allreduce_s: Quantity
    multicast_allreduce_s: Quantity
    nccl_allreduce_s: Quantity
    pcie_allreduce_s: Quantity
    alltoall_s: Quantity
    draft_s: Quantity


class FamilyPart(_Strict):
    """What kernels reach on one family of GPUs."""

    prefill_share: Quantity
    expert_share: dict[Format, Quantity]


class HardwareFile(_Strict):
    """hardware.yaml."""

    schema_: Literal["triage.hardware/1"] = Field(alias="schema")
    gpus: tuple[GpuPart, ...]
    reach: ReachPart
    families: dict[str, FamilyPart]
    lifted_expert_share: Quantity
    unknown_expert_share: Quantity


class LatentPart(_Strict):
    """Dimensions of latent attention."""

    query_rank: Whole
    kv_rank: Whole
    rope_dim: Whole
    nope_dim: Whole
    value_dim: Whole


class WidthsPart(_Strict):
    """Bytes a parameter."""

    experts: Positive
    shared: Positive
    dense: Positive
    attention: Positive
    head: Positive


class FormatPart(_Strict):
    """One number format that checkpoints of a model come in."""

    format: Format
    match: tuple[Text, ...]
    widths: WidthsPart
    source: Text
    checkpoint_bytes: float | None = None


class PublishedPart(_Strict):
    """What the publisher says, to check the dimensions by."""

    total: float
    active: float


class ModelPart(_Strict):
    """One model of models.yaml."""

    name: Text
    match: Annotated[tuple[Text, ...], Field(min_length=1)]
    unless: tuple[Text, ...] = ()
    source: Text
    layers: Whole
    dense_layers: Whole
    hidden: Whole
    vocabulary: Whole
    heads: Whole
    kv_heads: Whole
    head_dim: Whole
    latent: LatentPart | None = None
    experts: Whole
    experts_per_token: Whole
    shared_experts: Whole
    expert_intermediate: Whole
    dense_intermediate: Whole
    window_tokens: Whole = 0
    window_layers: Whole = 0
    published_parameters: PublishedPart
    formats: Annotated[tuple[FormatPart, ...], Field(min_length=1)]

    def model(self, form: FormatPart) -> Model:
        """The model in one of its formats."""
        return Model(
            name=f"{self.name} ({form.format})",
            layers=self.layers,
            dense_layers=self.dense_layers,
            hidden=self.hidden,
            vocabulary=self.vocabulary,
            heads=self.heads,
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            experts=self.experts,
            experts_per_token=self.experts_per_token,
            shared_experts=self.shared_experts,
            expert_intermediate=self.expert_intermediate,
            dense_intermediate=self.dense_intermediate,
            expert_format=form.format,
            widths=Widths(**form.widths.model_dump()),
            latent=Latent(**self.latent.model_dump()) if self.latent else None,
            window_tokens=self.window_tokens,
            window_layers=self.window_layers,
        )


class ModelsFile(_Strict):
    """models.yaml."""

    schema_: Literal["triage.models/1"] = Field(alias="schema")
    models: tuple[ModelPart, ...]


@cache
def hardware() -> HardwareFile:
    """hardware.yaml, read once."""
    return load_yaml(FOLDER / "hardware.yaml", HardwareFile)


@cache
def models() -> tuple[ModelPart, ...]:
    """The models of models.yaml, read once."""
    return load_yaml(FOLDER / "models.yaml", ModelsFile).models


def gpu_part(named: str) -> GpuPart | None:
    """The GPU whose name, or a text of its `match`, is in what was named; None if unknown."""
    text = named.lower()
    found = [g for g in hardware().gpus if any(m in text for m in g.match)]
    return found[0] if found else None


def node_of(part: GpuPart, count: int, expert_format: str) -> Node:
    """A node of `count` such GPUs, with what kernels reach for this format."""
    file = hardware()
    family = file.families[part.family]
    share = family.expert_share.get(expert_format, file.unknown_expert_share)  # type: ignore[call-overload]
    reach = {name: getattr(file.reach, name).value for name in ReachPart.model_fields}
    values = {
        name: getattr(part, name).value
        for name, field in GpuPart.model_fields.items()
        if field.annotation is Quantity
    }
    return Node(
        gpu=GpuModel(name=part.name, family=part.family, multicast=part.multicast, **values),
        count=count,
        reach=Reach(
            expert_share=share.value,
            prefill_share=family.prefill_share.value,
            **reach,
        ),
    )


def constants_of(part: GpuPart, expert_format: str) -> tuple[Constant, ...]:
    """Every constant that a node of this GPU rests on, with its source."""
    file = hardware()
    family = file.families[part.family]
    found = [
        (name, getattr(part, name))
        for name, field in GpuPart.model_fields.items()
        if field.annotation is Quantity
    ]
    found += [(name, getattr(file.reach, name)) for name in ReachPart.model_fields]
    share = family.expert_share.get(expert_format, file.unknown_expert_share)  # type: ignore[call-overload]
    found += [("expert_share", share), ("prefill_share", family.prefill_share)]
    return tuple(
        Constant(name=name, value=q.value, low=q.low, high=q.high, source=q.source)
        for name, q in found
    )


def model_named(named: str) -> tuple[ModelPart, FormatPart] | None:
    """The model and format that a path or repository name means; None if it is unknown."""
    text = named.rstrip("/").rsplit("/", 1)[-1].lower()
    for part in models():
        if any(m in text for m in part.match) and not any(u in text for u in part.unless):
            fits = [f for f in part.formats if any(m in text for m in f.match)]
            return part, (fits[0] if fits else part.formats[0])
    return None


class ChancePart(_Strict):
    """How likely one more attempt helps, and its hours."""

    share: Annotated[float, Field(ge=0, le=1)]
    hours: Positive
    why: Text


class ClassPart(_Strict):
    """Causes whose failing flags are repaired about equally often."""

    class_: Text = Field(alias="class")
    share: Annotated[float, Field(ge=0, le=1)]
    hours: Positive
    causes: tuple[Text, ...]
    source: Text


class AlternativePart(_Strict):
    """Something else that may be worth the hours."""

    kind: Literal["nvfp4", "dp-attention-ep", "kv-fp8", "graphs", "multicast"]
    title: Text
    share: Annotated[float, Field(ge=0, le=1)]
    hours: Positive
    why: Text
    risk: Text
    source: Text


class RulesPart(_Strict):
    """Thresholds of the decision."""

    noise_share: Quantity
    hypothesis_chance: Quantity
    hypothesis_hours: Quantity
    launches_at_most: Quantity
    run_hours: Quantity
    slow_factor: Quantity
    worth_share: Quantity
    usual_tree_tokens: Quantity
    tree_tokens: Annotated[tuple[int, ...], Field(min_length=1)]


class OptionsFile(_Strict):
    """options.yaml."""

    schema_: Literal["triage.options/1"] = Field(alias="schema")
    rules: RulesPart
    untried: ChancePart
    unknown: ChancePart
    classes: tuple[ClassPart, ...]
    alternatives: tuple[AlternativePart, ...]


@cache
def options() -> OptionsFile:
    """options.yaml, read once."""
    return load_yaml(FOLDER / "options.yaml", OptionsFile)


def rules() -> Rules:
    """The thresholds of the decision."""
    part = options().rules
    return Rules(
        noise_share=part.noise_share.value,
        hypothesis_chance=part.hypothesis_chance.value,
        hypothesis_hours=part.hypothesis_hours.value,
        launches_at_most=int(part.launches_at_most.value),
        run_hours=part.run_hours.value,
        lifted_expert_share=hardware().lifted_expert_share.value,
        slow_factor=part.slow_factor.value,
        worth_share=part.worth_share.value,
        tree_tokens=part.tree_tokens,
        usual_tree_tokens=int(part.usual_tree_tokens.value),
    )


def alternatives() -> tuple[Alternative, ...]:
    """What may be tried instead of the wanted flags."""
    return tuple(
        Alternative(
            kind=part.kind,
            title=part.title,
            chance=Chance(share=part.share, hours=part.hours, why=part.why),
            risk=part.risk,
        )
        for part in options().alternatives
    )


def chance_of(causes: Sequence[str | None]) -> Chance:
    """Of a flag that fails of these causes (None: unnamed); of one not launched if there are none.

    Faults in series multiply, and each has its hours.
    """
    file = options()
    if not causes:
        part = file.untried
        return Chance(share=part.share, hours=part.hours, why=part.why)
    share, hours, why = 1.0, 0.0, []
    for cause in causes:
        found = next((c for c in file.classes if cause in c.causes), None)
        share *= found.share if found else file.unknown.share
        hours = max(hours, found.hours if found else file.unknown.hours)
        why.append(f"{cause or 'unnamed'}: {found.class_ if found else file.unknown.why}")
    return Chance(share=share, hours=hours, why="; ".join(why))

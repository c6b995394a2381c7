"""What `triage advise` prints, key by key.

In:  nothing. Out: Advice.
Not: making it (triage/render/advice_document.py).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.parts import Closed, Count, Document, Number, Seconds

Rate = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class Stop(Closed):
    """Something wanted that gets no more work."""

    what: str
    """The change, as people say it."""
    why: str
    """The reason."""


class SituationPart(Closed):
    """What the advice is about."""

    model: str
    """Name and number format of the model."""
    model_source: str
    """Where its dimensions come from."""
    gpu: str
    """Name of the GPU model."""
    gpus: Number
    """How many."""
    gpu_source: str
    """Who named it."""
    served: list[Number]
    """Sequences at once that the server is for; the decision looks at these."""
    input_tokens: Rate
    """Tokens of a prompt."""
    output_tokens: Rate
    """Tokens of an answer."""
    speculation: bool
    """Whether the baseline speculates."""
    verify_tokens: Number | None
    """Tokens that a step verifies a sequence, 1 without speculation; null if nobody says it."""


class LayoutPart(Closed):
    """How the baseline lies on the GPUs."""

    tensor_parallel: Number
    """GPUs that split each layer."""
    pipeline_parallel: Number
    """Groups of layers."""
    expert_ranks: Number
    """Ranks that share out whole experts; 1: every rank has a slice of each."""
    attention_data_parallel: bool
    """Whether each rank has the attention of its own sequences."""
    alltoall: bool
    """Whether tokens are sent to their experts."""
    reduce: Literal["custom", "multicast", "nccl", "fused", "fused, NVLS"]
    """The kernel of all-reduces."""
    graphs: bool
    """Whether decode steps are captured."""
    expert_share: Share | None
    """Share of the memory's rate that the expert kernel reaches, if not the usual one."""


class BaselinePart(Closed):
    """The baseline without speculation at one concurrency, modelled."""

    concurrency: Number
    """Sequences at once."""
    step_s: Seconds
    """Seconds of a step, prompts of new sequences included."""
    tokens_per_s: Rate
    """Output tokens a second of all sequences."""
    user_tokens_per_s: Rate
    """Output tokens a second of one sequence."""
    regime: Literal["latency/launch", "kernel", "HBM", "compute", "comms"]
    """The largest term of a step."""
    hbm_share: Rate
    """Bytes of the step over what the memory gives in that time."""
    terms_s: dict[str, Seconds]
    """Seconds by what takes them."""
    fits: bool
    """Whether weights and context have room in the GPUs' memory."""


class GainPart(Closed):
    """Throughput over that of the baseline at one concurrency, of decode steps."""

    concurrency: Number
    """Sequences at once."""
    ratio: Rate
    """1.0: the same; with speculation, if the baseline has it."""
    low: Rate
    """Least ratio, with and without speculation."""
    high: Rate
    """Largest ratio, with and without speculation."""
    regime: Literal["latency/launch", "kernel", "HBM", "compute", "comms"]
    """What then limits a step."""


class HypothesisPart(Closed):
    """What the option would bring if something held that is not shown."""

    say: str
    """The condition."""
    low: float
    """Least gain as a share; 0.06 is 6 %."""
    high: float
    """Largest gain as a share."""
    shown_by: str
    """What would show it."""


class OptionPart(Closed):
    """One thing to do."""

    key: str
    """Key of the wanted item, or name of an alternative."""
    title: str
    """It in words."""
    wanted: bool
    """Whether the recipe wants it; else it is an alternative."""
    status: Literal["works", "fails", "untried"]
    """What launches have shown."""
    gains: list[GainPart]
    """At each shown concurrency; empty if it is not modelled."""
    low: float | None
    """Least gain at the served concurrencies as a share; null if it is not modelled."""
    high: float | None
    """Largest gain at the served concurrencies as a share."""
    hypothesis: HypothesisPart | None
    """What it would bring at best, if something held that is not shown."""
    chance: Share
    """That the hours make it work; judgement."""
    chance_why: str
    """Where the chance comes from."""
    hours: Annotated[float, Field(gt=0)]
    """Of work; judgement."""
    gain_per_hour: Rate
    """Chance times gain over hours, as a share an hour."""
    risk: str
    """What may spoil it; empty for wanted items."""
    assumptions: list[str]
    """What its gains rest on."""


class AcceptedPart(Closed):
    """Accepted tokens that a figure needs."""

    verify_tokens: Number
    """Tokens that a step verifies a sequence."""
    accepted_tokens: Rate
    """Accepted a step, if it takes the modelled time."""


class MeasuredPart(Closed):
    """A measured figure against the model."""

    concurrency: Number
    """Sequences at once."""
    tokens_per_s: Rate
    """Output tokens a second of all sequences, as measured."""
    source: str
    """Who measured it."""
    without: list[str]
    """Flags of the baseline that the measured server did not have."""
    speculation: bool
    """Whether it was measured with speculation."""
    modelled_tokens_per_s: Rate
    """Modelled without speculation."""
    ratio: Rate
    """Measured over modelled."""
    accepted_tokens: list[AcceptedPart]
    """With speculation: what the figure needs."""
    slow: bool
    """Whether it is so much slower than modelled that something else is wrong."""
    say: str
    """It in a sentence."""


class HbmPart(Closed):
    """Whether counted bytes support "bound by the memory's bandwidth"."""

    shown: bool
    """Whether they do."""
    low: Rate
    """Least share of the memory's rate."""
    high: Rate
    """Largest share of the memory's rate."""
    say: str
    """It in a sentence."""
    shown_by: str
    """What would show it."""


class PointPart(Closed):
    """A point of a curve."""

    concurrency: Number
    """Sequences at once."""
    tokens_per_s: Rate
    """Output tokens a second of all sequences."""


class CurvePart(Closed):
    """Modelled throughput of one layout without speculation."""

    name: str
    """The layout."""
    points: list[PointPart]
    """As far as the load fits in memory."""


class ConstantPart(Closed):
    """A figure that the model rests on."""

    name: str
    """Its name; it ends with the unit, or with share."""
    value: Rate
    """What is calculated with."""
    low: Rate | None
    """What it may be at least; null if nobody says it."""
    high: Rate | None
    """What it may be at most."""
    source: str
    """Who says so."""


class Advice(Document):
    """What the wanted flags could bring, and whether to go on with those that fail."""

    name: str
    """The recipe's name."""
    simulated: bool
    """Whether the launches it rests on were played by the replay engine."""
    decision: Literal["persevere", "pivot"]
    """Go on with a wanted flag that does not work yet, or turn to something else."""
    say: str
    """The decision in a sentence."""
    keep: list[str]
    """What to keep."""
    stop: list[Stop]
    """What gets no more work."""
    not_judged: list[str]
    """What is wanted, not known to work, and not modelled."""
    next: str | None
    """Key of the option to work on; null if nothing promises a gain."""
    launches: Count
    """At most so many launches on it."""
    changed_by: list[str]
    """Evidence that would change the decision."""
    situation: SituationPart
    """What it is about."""
    layout: LayoutPart
    """How the baseline lies on the GPUs."""
    baseline: list[BaselinePart]
    """The baseline at each shown concurrency."""
    options: list[OptionPart]
    """What can be done, the best an hour first."""
    measured: list[MeasuredPart]
    """Figures against the model."""
    hbm_bound: HbmPart
    """Whether the memory's bandwidth is shown to be the limit."""
    curves: list[CurvePart]
    """Throughput over concurrency."""
    assumptions: list[str]
    """What all of it rests on."""
    not_modelled: list[str]
    """Flags and variables whose effect is not modelled."""
    constants: list[ConstantPart]
    """Every constant with its source."""

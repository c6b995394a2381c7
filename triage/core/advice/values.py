"""The shape of an advice.

In:  nothing. Out: the values that the stages of triage.core.advice hand on, and Advice.
Not: how they are found.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from triage.core.physics.layout import Layout, Load
from triage.core.physics.model import Model
from triage.core.physics.node import Node


class Status(StrEnum):
    """What launches have shown of an option."""

    WORKS = "works"
    FAILS = "fails"
    UNTRIED = "untried"


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A figure that the model rests on; its name ends with the unit."""

    name: str
    value: float
    low: float | None
    high: float | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A measured throughput: all sequences together; `without` names flags that it lacked."""

    concurrency: int
    tokens_per_s: float
    source: str
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """How likely one more attempt is to make an option work, and what it costs."""

    share: float
    hours: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Something else than the wanted flags that may be worth the hours.

    `kind` names what it changes: nvfp4, dp-attention-ep, kv-fp8, graphs, multicast or
    speculation.
    """

    kind: str
    title: str
    chance: Chance
    risk: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the decision rests on beside gains: judgement, in shares and hours."""

    noise_share: float  # a smaller gain does not show in a benchmark
    hypothesis_chance: float  # that something which is not shown is so
    hypothesis_hours: float  # to show it
    launches_at_most: int
    run_hours: float  # that the deployment will run
    lifted_expert_share: float
    slow_factor: float  # measured slower than modelled by this: look elsewhere first
    worth_share: float  # a gain from which a layout is worth its work again
    tree_tokens: tuple[int, ...]  # verified tokens of a step where the recipe does not say
    usual_tree_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the advice is about.

    `served` are the concurrencies that the server is for: the decision looks at them.
    `shown` are those of the table. `verify_tokens` is None where speculation is on and
    the recipe does not say how many tokens it verifies.
    """

    name: str
    model: Model
    node: Node
    model_source: str
    node_source: str
    served: tuple[int, ...]
    shown: tuple[int, ...]
    input_tokens: float
    output_tokens: float
    speculation: bool
    verify_tokens: int | None
    reported: tuple[Reported, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    constants: tuple[Constant, ...] = ()
    nvfp4: tuple[Model, float] | None = None  # in that format, with its kernel's share of HBM

    def load(self, concurrency: float, verify_tokens: int = 1) -> Load:
        """The load at one concurrency."""
        return Load(
            concurrency=concurrency,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            verify_tokens=verify_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Throughput relative to the baseline at one concurrency; 1.0 is the same.

    `low` and `high` span what the recipe leaves open: with and without speculation.
    """

    concurrency: int
    ratio: float
    low: float
    high: float
    regime: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """What an option would bring if something that is not shown held."""

    say: str
    low: float  # share, 0.37 is 37 %
    high: float
    shown_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One thing to do, and what it is worth."""

    key: str
    title: str
    wanted: bool
    status: Status
    gains: tuple[Gain, ...]  # at the shown concurrencies; empty: not modelled
    low: float | None  # share over the served concurrencies, 0.06 is 6 %; None: not modelled
    high: float | None
    hypothesis: Hypothesis | None
    chance: Chance
    gain_per_hour: float  # expected share an hour
    risk: str = ""
    assumptions: tuple[str, ...] = ()

    @property
    def best(self) -> float:
        """The gain at best, its hypothesis included."""
        found = [self.high or 0.0]
        found += [self.hypothesis.high] if self.hypothesis else []
        return max(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What the baseline does at one concurrency without speculation, by the model."""

    concurrency: int
    step_s: float
    tokens_per_s: float
    regime: str
    hbm_share: float
    terms_s: tuple[tuple[str, float], ...]
    fits: bool  # in the memory of the GPUs


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A reported figure against the model."""

    reported: Reported
    speculation: bool
    modelled_tokens_per_s: float  # without speculation
    ratio: float  # measured over modelled
    accepted: tuple[tuple[int, float], ...]  # verified tokens -> accepted ones that it needs
    say: str
    slow: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthClaim:
    """What counted bytes say of "bound by memory bandwidth"."""

    shown: bool
    low: float
    high: float
    say: str
    shown_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Modelled throughput of one layout without speculation: (concurrency, tokens a second)."""

    name: str
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Go on with what fails, or turn to something else; and what would change that."""

    kind: str  # persevere | pivot
    say: str
    keep: tuple[str, ...]
    stop: tuple[tuple[str, str], ...]  # what, why
    not_judged: tuple[str, ...]  # wanted, not known to work, and not modelled
    next: str  # key of the option to work on, or ""
    launches: int  # at most, on it
    changed_by: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The whole; shares and ratios are modelled unless `reported` says otherwise."""

    situation: Situation
    layout: Layout
    baseline: tuple[Baseline, ...]
    options: tuple[Option, ...]
    comparisons: tuple[Comparison, ...]
    bandwidth: BandwidthClaim
    decision: Decision
    curves: tuple[Curve, ...]
    assumptions: tuple[str, ...]
    not_modelled: tuple[str, ...]
    simulated: bool = field(default=False)  # whether launches were played by the replay engine

"""How a model lies on the GPUs of a node, and what is asked of it.

In:  nothing. Out: Layout, Load.
Not: flags (triage.core.advice) or time (step.py).
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from triage.core.records import dataclass


class Reduce(StrEnum):
    """The kernel of small all-reduces."""

    CUSTOM = "custom"
    MULTICAST = "multicast"  # NVLS
    NCCL = "nccl"
    FUSED = "fused"  # small ones with the norm that follows, large ones as CUSTOM
    FUSED_MULTICAST = "fused, NVLS"  # small ones as FUSED, large ones as MULTICAST

    @property
    def in_switch(self) -> bool:
        """Whether the switch adds up large ones."""
        return self in (Reduce.MULTICAST, Reduce.FUSED_MULTICAST)

    @property
    def short(self) -> bool:
        """Whether small ones take few hops."""
        return self in (Reduce.MULTICAST, Reduce.FUSED, Reduce.FUSED_MULTICAST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Parallel widths and the switches that the model of a step knows.

    `expert_ranks` share out whole experts; 1: every rank has a slice of each. `alltoall`:
    tokens travel to their experts; else every rank has all tokens and an all-reduce.
    """

    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    expert_ranks: int = 1
    attention_data_parallel: bool = False
    alltoall: bool = False
    reduce: Reduce = Reduce.CUSTOM
    graphs: bool = True
    expert_share: float | None = None  # of another kernel than the node's usual one

    @property
    def expert_parallel(self) -> bool:
        """Whether experts are shared out whole."""
        return self.expert_ranks > 1

    @property
    def gpus(self) -> int:
        """GPUs that it takes."""
        return self.tensor_parallel * self.pipeline_parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is served: sequences at once, their lengths, tokens verified a sequence and step.

    `verify_tokens` is 1 without speculation.
    """

    concurrency: float
    input_tokens: float = 1024.0
    output_tokens: float = 1024.0
    verify_tokens: int = 1
    prefill: bool = field(default=False)  # whether new prompts interrupt decoding

    @property
    def context_tokens(self) -> float:
        """Context of a sequence, averaged over its life."""
        return self.input_tokens + self.output_tokens / 2

    @property
    def tokens(self) -> float:
        """Tokens that one step of the model takes."""
        return self.concurrency * self.verify_tokens

"""Seconds of one decode or verify step, by what takes them.

In:  Model, Node, Layout, Load. Out: Step.
Not: tokens a second (throughput.py), what the terms say (regime.py).

The terms add up: each is a kernel or a launch that waits for the one before. The
experts take the longer of reading their weights and multiplying with them.
"""

from __future__ import annotations

from triage.core.physics.comm import (
    allreduce_bytes,
    allreduce_latency_s,
    alltoall_bytes,
    on_this_node,
)
from triage.core.physics.experts import imbalance, touched
from triage.core.physics.layout import Layout, Load
from triage.core.physics.model import (
    Model,
    active_parameters,
    expert_bytes,
    kv_bytes_per_token,
    other_bytes,
    parameters_per_expert,
    per_token_weight_bytes,
    replicated_bytes,
)
from triage.core.physics.node import Node
from triage.core.records import dataclass

OPERATIONS_PER_PARAMETER = 2.0  # multiply and add
ALLREDUCES_PER_LAYER = 2
ALLTOALLS_PER_LAYER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: seconds by what takes them, and bytes that one GPU reads of its memory."""

    layers_s: float  # serial cost of the layers, small collectives included
    dense_s: float
    experts_s: float
    kv_s: float
    link_s: float  # bytes over links, not the latency
    alltoall_s: float  # latency of its launches
    prefill_s: float
    draft_s: float
    experts_by_compute: bool
    dense_bytes: float
    expert_bytes: float
    kv_bytes: float
    operations: float  # per GPU
    limit_s: float  # what memory and arithmetic allow at their full rate

    @property
    def seconds(self) -> float:
        """The whole step."""
        return (
            self.layers_s + self.dense_s + self.experts_s + self.kv_s + self.link_s
            + self.alltoall_s + self.prefill_s + self.draft_s
        )  # fmt: skip

    @property
    def hbm_bytes(self) -> float:
        """Bytes that one GPU reads."""
        return self.dense_bytes + self.expert_bytes + self.kv_bytes


def step(model: Model, node: Node, layout: Layout, load: Load) -> Step:
    """One step of the load; with a pipeline, of the part of it that one stage has at a time.

    A token passes all stages one after the other, while each stage works on another part
    of the sequences: the seconds are those of the whole way.
    """
    gpu, reach, gpus = node.gpu, node.reach, layout.tensor_parallel
    tokens = load.tokens / layout.pipeline_parallel
    sequences = load.concurrency / layout.pipeline_parallel
    dense = _dense_bytes(model, layout)
    experts = _expert_bytes(model, layout, tokens)
    kv = _kv_bytes(model, layout, load, sequences)
    share = reach.expert_share if layout.expert_share is None else layout.expert_share
    reading_s = experts / (share * gpu.hbm_bytes_per_s)
    work = _expert_operations(model, layout, tokens)
    working_s = work / (reach.operations_share * _operations_per_s(model, node))
    operations = OPERATIONS_PER_PARAMETER * tokens * active_parameters(model) / gpus
    prompts = load.concurrency * load.input_tokens / load.output_tokens if load.prefill else 0.0
    return Step(
        layers_s=_layers_s(model, node, layout),
        dense_s=dense / (reach.dense_share * gpu.hbm_bytes_per_s),
        experts_s=max(reading_s, working_s),
        kv_s=kv / (reach.kv_share * gpu.hbm_bytes_per_s),
        link_s=_link_bytes(model, node, layout, tokens) / (reach.link_share * gpu.link_bytes_per_s),
        alltoall_s=_alltoalls(model, layout) * reach.alltoall_s,
        prefill_s=prompts * prefill_s_per_token(model, node, layout),
        draft_s=reach.draft_s if load.verify_tokens > 1 else 0.0,
        experts_by_compute=working_s > reading_s,
        dense_bytes=dense,
        expert_bytes=experts,
        kv_bytes=kv,
        operations=operations,
        limit_s=max(
            (dense + experts + kv) / gpu.hbm_bytes_per_s,
            work / _operations_per_s(model, node),
        ),
    )


def prefill_s_per_token(model: Model, node: Node, layout: Layout) -> float:
    """Seconds of one token of a prompt, on all GPUs of the layout together."""
    rate = node.reach.prefill_share * node.gpu.bf16_operations_per_s * layout.gpus
    return OPERATIONS_PER_PARAMETER * active_parameters(model) / rate


def _dense_bytes(model: Model, layout: Layout) -> float:
    if layout.attention_data_parallel:
        return replicated_bytes(model) + other_bytes(model) / layout.tensor_parallel
    return per_token_weight_bytes(model) / layout.tensor_parallel


def _expert_bytes(model: Model, layout: Layout, tokens: float) -> float:
    """Bytes of touched experts on the busiest GPU."""
    some = touched(model.experts, model.experts_per_token, tokens)
    return expert_bytes(model, some) / layout.tensor_parallel * _unevenness(model, layout, tokens)


def _unevenness(model: Model, layout: Layout, tokens: float) -> float:
    return imbalance(model.experts, model.experts_per_token, tokens, layout.expert_ranks)


def _kv_bytes(model: Model, layout: Layout, load: Load, sequences: float) -> float:
    """Bytes of context that one GPU reads; with data-parallel attention, of its sequences."""
    gpus, context = layout.tensor_parallel, load.context_tokens
    if layout.attention_data_parallel:
        return sequences / gpus * context * kv_bytes_per_token(model, 1, context)
    return sequences * context * kv_bytes_per_token(model, gpus, context)


def _expert_operations(model: Model, layout: Layout, tokens: float) -> float:
    per_token = model.experts_per_token * parameters_per_expert(model) * model.expert_layers
    busiest = _unevenness(model, layout, tokens) / layout.tensor_parallel
    return OPERATIONS_PER_PARAMETER * tokens * per_token * busiest


def _operations_per_s(model: Model, node: Node) -> float:
    """The rate of the arithmetic that the experts' format uses; int4 is unpacked to bf16."""
    gpu = node.gpu
    fastest = {
        "fp8": gpu.fp8_operations_per_s,
        "nvfp4": gpu.fp4_operations_per_s,
        "mxfp4": gpu.fp4_operations_per_s,
    }
    return fastest.get(model.expert_format, 0.0) or gpu.bf16_operations_per_s


def _allreduces(model: Model, layout: Layout) -> int:
    """All-reduces of a step: after attention and after the MLP of each layer, if split."""
    if layout.tensor_parallel <= 1:
        return 0
    after_mlp = model.layers - (model.expert_layers if layout.alltoall else 0)
    if layout.alltoall and layout.attention_data_parallel:
        return 0  # the dense layers' MLP is replicated with the attention
    after_attention = 0 if layout.attention_data_parallel else model.layers
    return after_attention + after_mlp


def _alltoalls(model: Model, layout: Layout) -> int:
    return ALLTOALLS_PER_LAYER * model.expert_layers if layout.alltoall else 0


def _layers_s(model: Model, node: Node, layout: Layout) -> float:
    """Serial cost of all layers; the small all-reduces in it are those of this layout."""
    reach = node.reach
    within = ALLREDUCES_PER_LAYER * model.layers * reach.custom_allreduce_s
    alone = model.layers * reach.layer_s - within
    once = allreduce_latency_s(node, layout.reduce, layout.tensor_parallel)
    latency = _allreduces(model, layout) * once
    return (alone + latency) * (1.0 if layout.graphs else reach.eager_factor)


def _link_bytes(model: Model, node: Node, layout: Layout, tokens: float) -> float:
    """Bytes that one GPU sends in a step."""
    gpus = layout.tensor_parallel
    reduce = on_this_node(node, layout.reduce)
    reduced = _allreduces(model, layout) * allreduce_bytes(tokens, model.hidden, gpus, reduce)
    if not layout.alltoall:
        return reduced
    sent = alltoall_bytes(tokens, model.hidden, gpus, model.experts_per_token)
    return reduced + model.expert_layers * sent

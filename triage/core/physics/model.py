"""A transformer as counts of parameters and bytes; closed formulas, nothing measured.

In:  the dimensions of its config.json. Out: parameters and bytes, whole and per GPU.
Not: how long reading them takes (step.py).
"""

from __future__ import annotations

from triage.core.records import dataclass

MATRICES_PER_MLP = 3  # gate, up and down


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Multi-head latent attention (MLA): ranks and head dimensions."""

    query_rank: int  # 0: the query is not compressed
    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """Bytes that one stored parameter takes, scales included, by what it belongs to."""

    experts: float
    shared: float
    dense: float  # the MLP of layers without experts
    attention: float
    head: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Dimensions of a decoder; `experts` is 0 for one without experts.

    `latent` is set for MLA, else attention is grouped (`kv_heads`, `head_dim`).
    `window_layers` of the layers see only the last `window_tokens`.
    """

    name: str
    layers: int
    dense_layers: int
    hidden: int
    vocabulary: int
    heads: int
    kv_heads: int
    head_dim: int
    experts: int
    experts_per_token: int
    shared_experts: int
    expert_intermediate: int
    dense_intermediate: int
    expert_format: str  # int4 | nvfp4 | mxfp4 | fp8 | bf16
    widths: Widths
    kv_bytes_per_element: float = 2.0
    latent: Latent | None = None
    window_tokens: int = 0
    window_layers: int = 0

    @property
    def expert_layers(self) -> int:
        """Layers with routed experts."""
        return self.layers - self.dense_layers if self.experts else 0


def parameters_per_expert(model: Model) -> int:
    """Parameters of one routed expert."""
    return MATRICES_PER_MLP * model.hidden * model.expert_intermediate


def attention_parameters(model: Model) -> int:
    """Parameters of the attention of one layer."""
    hidden, heads = model.hidden, model.heads
    if model.latent is None:
        keys_and_values = 2 * hidden * model.kv_heads * model.head_dim
        return keys_and_values + 2 * hidden * heads * model.head_dim
    latent = model.latent
    per_query = heads * (latent.nope_dim + latent.rope_dim)
    query = (
        hidden * latent.query_rank + latent.query_rank * per_query
        if latent.query_rank
        else hidden * per_query
    )
    down = hidden * (latent.kv_rank + latent.rope_dim)
    up = latent.kv_rank * heads * (latent.nope_dim + latent.value_dim)
    return query + down + up + heads * latent.value_dim * hidden


def total_parameters(model: Model) -> int:
    """All parameters, input embedding included."""
    return (
        model.expert_layers * model.experts * parameters_per_expert(model)
        + model.layers * attention_parameters(model)
        + _shared_parameters(model)
        + _dense_parameters(model)
        + _router_parameters(model)
        + 2 * model.hidden * model.vocabulary
    )


def active_parameters(model: Model) -> int:
    """Parameters that one token uses, the output head included, the input embedding not."""
    return (
        model.expert_layers * model.experts_per_token * parameters_per_expert(model)
        + model.layers * attention_parameters(model)
        + _shared_parameters(model)
        + _dense_parameters(model)
        + _router_parameters(model)
        + model.hidden * model.vocabulary
    )


def weight_bytes(model: Model) -> float:
    """Bytes of the checkpoint."""
    return (
        expert_bytes(model, model.experts)
        + per_token_weight_bytes(model)
        + model.hidden * model.vocabulary * model.widths.head
    )


def expert_bytes(model: Model, touched: float) -> float:
    """Bytes of `touched` routed experts in each layer that has them; of all GPUs together."""
    one = parameters_per_expert(model) * model.widths.experts
    return model.expert_layers * touched * one


def replicated_bytes(model: Model) -> float:
    """Bytes of attention and shared experts: what data-parallel attention repeats per GPU."""
    attention = model.layers * attention_parameters(model) * model.widths.attention
    return attention + _shared_parameters(model) * model.widths.shared


def other_bytes(model: Model) -> float:
    """Bytes of dense MLPs, routers and the output head."""
    head = (_router_parameters(model) + model.hidden * model.vocabulary) * model.widths.head
    return _dense_parameters(model) * model.widths.dense + head


def per_token_weight_bytes(model: Model) -> float:
    """Bytes that every step reads whatever its tokens: all but the routed experts."""
    return replicated_bytes(model) + other_bytes(model)


def kv_bytes_per_token(model: Model, tensor_parallel: int, context_tokens: float) -> float:
    """Bytes of the cache that one GPU reads for each token of context, averaged over it.

    The latent of MLA is whole on every GPU; heads of grouped attention are split, as
    far as there are any. Layers with a window read no more than it.
    """
    if model.latent is not None:
        per_layer = (model.latent.kv_rank + model.latent.rope_dim) * model.kv_bytes_per_element
    else:
        split = max(1 / tensor_parallel, 1 / model.kv_heads)
        heads = model.kv_heads * split
        per_layer = 2 * heads * model.head_dim * model.kv_bytes_per_element
    seen = min(1.0, model.window_tokens / context_tokens) if context_tokens else 1.0
    return per_layer * (model.layers - model.window_layers * (1 - seen))


def _shared_parameters(model: Model) -> int:
    return model.expert_layers * model.shared_experts * parameters_per_expert(model)


def _dense_parameters(model: Model) -> int:
    layers = model.layers - model.expert_layers
    return layers * MATRICES_PER_MLP * model.hidden * model.dense_intermediate


def _router_parameters(model: Model) -> int:
    return model.expert_layers * model.hidden * model.experts

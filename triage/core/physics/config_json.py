"""The dimensions of a model from its own config.json.

In:  the parsed file. Out: a Model, or a sentence that says what is missing.
Not: reading the file, or models known by name (triage.knowledge).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from triage.core.physics.model import Latent, Model, Widths

# Names that families of models use for one thing.
_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts")
_PER_TOKEN = ("num_experts_per_tok", "experts_per_token", "moe_topk")
_SHARED = ("n_shared_experts", "num_shared_experts")
_LARGEST = 10**9


def model_of(config: Mapping[str, Any], name: str) -> Model | str:
    """The model that the file describes; a reason in words if it does not describe one."""
    body = config.get("text_config")
    text = body if isinstance(body, Mapping) else config
    try:
        quantization = text.get("quantization_config") or config.get("quantization_config") or {}
        return _model(text, quantization, name)
    except _MissingError as error:
        return f"its config.json has no usable {error}"


class _MissingError(Exception):
    """A key that is not there, or is no count."""


def _model(text: Mapping[str, Any], quantization: Mapping[str, Any], name: str) -> Model:
    layers, hidden = _need(text, "num_hidden_layers"), _need(text, "hidden_size")
    heads = _need(text, "num_attention_heads")
    experts = _first(text, _EXPERTS)
    intermediate = _first(text, ("intermediate_size",))
    per_expert = _first(text, ("moe_intermediate_size", "expert_intermediate_size")) or intermediate
    if not per_expert and not intermediate:
        raise _MissingError("intermediate_size")
    expert_format, widths = _widths(quantization, text)
    window = _first(text, ("sliding_window",))
    kinds = text.get("layer_types")
    sliding = sum(kind == "sliding_attention" for kind in kinds) if isinstance(kinds, list) else 0
    return Model(
        name=f"{name} ({expert_format})",
        layers=layers,
        dense_layers=min(layers, _first(text, ("first_k_dense_replace",))) if experts else layers,
        hidden=hidden,
        vocabulary=_need(text, "vocab_size"),
        heads=heads,
        kv_heads=_first(text, ("num_key_value_heads",)) or heads,
        head_dim=_first(text, ("head_dim",)) or hidden // heads,
        experts=experts,
        experts_per_token=_first(text, _PER_TOKEN) if experts else 0,
        shared_experts=_first(text, _SHARED),
        expert_intermediate=per_expert if experts else 0,
        dense_intermediate=intermediate or per_expert,
        expert_format=expert_format,
        widths=widths,
        latent=_latent(text),
        window_tokens=window if sliding else 0,
        window_layers=sliding if window else 0,
    )


def _latent(text: Mapping[str, Any]) -> Latent | None:
    rank = _first(text, ("kv_lora_rank",))
    if not rank:
        return None
    return Latent(
        query_rank=_first(text, ("q_lora_rank",)),
        kv_rank=rank,
        rope_dim=_need(text, "qk_rope_head_dim"),
        nope_dim=_need(text, "qk_nope_head_dim"),
        value_dim=_need(text, "v_head_dim"),
    )


def _widths(quantization: Mapping[str, Any], text: Mapping[str, Any]) -> tuple[str, Widths]:
    """Format of the experts and bytes a parameter, by what the quantisation says of itself.

    Which parts are left in bf16 is told by ignore lists of many forms; what they commonly
    leave out is taken: attention and head for 4-bit formats, the head for fp8.
    """
    method = str(quantization.get("quant_method", "")).lower()
    said = str(quantization).lower()
    wide = 4.0 if str(text.get("torch_dtype", text.get("dtype", ""))) == "float32" else 2.0
    if "nvfp4" in said or "modelopt_fp4" in method:
        return "nvfp4", _four_bit(0.5 + 1 / 16, wide)
    if "mxfp4" in said:
        return "mxfp4", _four_bit(0.5 + 1 / 32, wide)
    if method in ("fp8", "fbgemm_fp8") or "'num_bits': 8" in said:
        return "fp8", Widths(experts=1.0, shared=1.0, dense=1.0, attention=1.0, head=wide)
    if "'num_bits': 4" in said or method in ("awq", "gptq", "awq_marlin", "gptq_marlin"):
        size = _group(quantization)
        return "int4", _four_bit(0.5 + 2 / size, wide)
    return "bf16", Widths(experts=wide, shared=wide, dense=wide, attention=wide, head=wide)


def _four_bit(experts: float, wide: float) -> Widths:
    return Widths(experts=experts, shared=wide, dense=wide, attention=wide, head=wide)


def _group(quantization: Mapping[str, Any]) -> int:
    """Parameters that share a scale."""
    found = _find(quantization, "group_size")
    return found if isinstance(found, int) and found > 0 else 128


def _find(value: object, key: str) -> object:
    if isinstance(value, Mapping):
        if key in value:
            return value[key]
        return next((f for v in value.values() if (f := _find(v, key)) is not None), None)
    return None


def _first(text: Mapping[str, Any], names: tuple[str, ...]) -> int:
    """The first of these keys that holds a count; 0 if none does."""
    for name in names:
        value = text.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LARGEST:
            return value
    return 0


def _need(text: Mapping[str, Any], name: str) -> int:
    found = _first(text, (name,))
    if not found:
        raise _MissingError(name)
    return found

"""Sizes of a model that have to be divisible by the widths of the parallel layout.

In:  a model's config.json, a configuration. Out: findings, each with the key.
Not: whether it fits into memory.

Source: the assertions of SGLang 0.5.23 in arg_groups/parallel_hook.py, layers/moe/fused_moe_triton,
layers/quantization/fp8.py and the attention modules of its models.
"""

from __future__ import annotations

from collections.abc import Iterator

from triage.core.config import Config
from triage.core.inspection.facts import Finding, Model
from triage.core.inspection.quantised import scheme_of
from triage.core.records import dataclass

EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
_SPANNING = frozenset(
    {
        "megamoe", "deepep", "deepep_v2", "mooncake", "nixl", "ascend_fuseep", "flashinfer",
        "flashinfer_megamoe", "mori", "pplx",
    }
)  # fmt: skip
_BLOCK = 2  # sizes of a block: outputs, inputs


@dataclass(frozen=True, slots=True)
class _Widths:
    """The widths that were asked for, 1 where nothing was said."""

    tp: int
    pp: int
    ep: int
    attn_dp: int
    attn_cp: int
    redundant: int
    spans: bool  # the all-to-all backend spreads the experts over all of TP

    @property
    def ep_flags(self) -> list[str]:
        """The flags that the width of the experts comes from."""
        return ["tp-size", "moe-a2a-backend"] if self.spans else ["ep-size"]

    @classmethod
    def of(cls, config: Config) -> _Widths:
        """Of the flags."""

        def number(*flags: str) -> int:
            for flag in flags:
                value = config.get(flag)
                if isinstance(value, str) and value.isdigit():
                    return int(value)
            return 0

        tp = number("tp-size") or 1
        attn_dp = number("attn-dp-size")
        if not attn_dp and config.get("enable-dp-attention"):
            attn_dp = number("dp-size")
        spans = config.get("moe-a2a-backend") in _SPANNING
        return cls(
            tp=tp,
            pp=number("pp-size") or 1,
            ep=tp if spans else number("ep-size") or 1,
            attn_dp=attn_dp or 1,
            attn_cp=number("attn-cp-size") or 1,
            redundant=number("ep-num-redundant-experts"),
            spans=spans,
        )


def divisibility(model: Model, config: Config) -> Iterator[Finding]:
    """Every size that a width does not divide, with the key of config.json and the flags."""
    widths = _Widths.of(config)
    yield from _layout(widths)
    yield from _heads(model, widths)
    yield from _experts(model, widths)
    layers, key = model.number("num_hidden_layers", "n_layer", "num_layers")
    if layers and widths.pp > layers:
        yield _found(f"{layers} layers cannot fill {widths.pp} pipeline stages", [key], ["pp-size"])
    yield from _blocks(model, widths, config)


def _layout(widths: _Widths) -> Iterator[Finding]:
    group = widths.attn_dp * widths.attn_cp
    if widths.tp % group:
        flags = ["attn-dp-size"] if widths.attn_cp == 1 else ["attn-dp-size", "attn-cp-size"]
        yield _found(
            f"tp-size {widths.tp} is no multiple of {group} attention groups",
            [],
            ["tp-size", *flags],
        )
    if widths.tp % widths.ep:
        yield _found(
            f"tp-size {widths.tp} is no multiple of ep-size {widths.ep}", [], ["tp-size", "ep-size"]
        )


def _heads(model: Model, widths: _Widths) -> Iterator[Finding]:
    """Attention heads over the ranks of an attention group."""
    group = widths.attn_dp * widths.attn_cp
    if widths.tp % group or widths.tp == group:
        return
    ranks = widths.tp // group
    flags = ["tp-size"] + (["attn-dp-size"] if widths.attn_dp > 1 else [])
    heads, key = model.number("num_attention_heads", "n_head")
    if heads and heads % ranks:
        yield _found(f"{heads} attention heads do not divide by {ranks} ranks", [key], flags)
    kv, key = model.number("num_key_value_heads")
    if kv and not model.number("kv_lora_rank")[0]:
        low, high = sorted((kv, ranks))
        if high % low:
            yield _found(f"{kv} key-value heads and {ranks} ranks do not divide", [key], flags)


def _experts(model: Model, widths: _Widths) -> Iterator[Finding]:
    experts, key = model.number(*EXPERTS)
    total = experts + widths.redundant if experts else 0
    if total and total % widths.ep:
        more = f" and {widths.redundant} redundant ones" if widths.redundant else ""
        yield _found(
            f"{experts} experts{more} do not divide by the {widths.ep} ranks of their group",
            [key],
            widths.ep_flags,
        )


def _blocks(model: Model, widths: _Widths, config: Config) -> Iterator[Finding]:
    """Quantisation blocks and groups that a rank's part would cut."""
    given = model.values.get("quantization_config")
    quantised = given if isinstance(given, dict) else {}
    block = quantised.get("weight_block_size")
    if widths.tp % widths.ep:
        return
    share = widths.tp // widths.ep  # ranks that share an expert
    parts = [
        (model.number("moe_intermediate_size"), share, ["tp-size", *widths.ep_flags]),
        (model.number("intermediate_size"), widths.tp, ["tp-size"]),
    ]
    if not model.number(*EXPERTS)[0]:
        parts = parts[1:]
    elif model.number("moe_intermediate_size")[0]:
        parts = parts[:1]  # dense layers of such models may be kept whole
    asked = config.get("quantization")
    scheme = scheme_of(model, asked if isinstance(asked, str) else "")
    for (size, key), ranks, flags in parts:
        if not size or ranks == 1:
            continue
        part = size / ranks
        if isinstance(block, list) and len(block) == _BLOCK and part % int(block[0]):
            yield _found(
                f"{size} of {key.rpartition('.')[2]} over {ranks} ranks is {part:g}, no multiple of"
                f" the quantisation block of {block[0]}",
                [key, f"{model.prefix}quantization_config.weight_block_size"],
                flags,
            )
        elif scheme is not None and scheme.group and part % scheme.group:
            yield _found(
                f"{size} of {key.rpartition('.')[2]} over {ranks} ranks is {part:g}, no multiple of"
                f" the quantisation group of {scheme.group}",
                [key],
                flags,
            )


def _found(say: str, keys: list[str], flags: list[str]) -> Finding:
    return Finding(
        check="divisibility",
        say=say,
        where=tuple(f"config.json: {key}" for key in keys) or tuple(f"--{flag}" for flag in flags),
        flags=tuple(dict.fromkeys(flags)),
    )

"""Counted parameters and bytes are the published ones, and the closed forms of their parts."""

from __future__ import annotations

import pytest
from physics_data import model

from triage.core.physics.config_json import model_of
from triage.core.physics.layout import Layout, Load
from triage.core.physics.model import (
    active_parameters,
    expert_bytes,
    kv_bytes_per_token,
    per_token_weight_bytes,
    total_parameters,
    weight_bytes,
)
from triage.core.physics.step import step
from triage.knowledge.physics import models

EVERY = [(part, form) for part in models() for form in part.formats]


@pytest.mark.parametrize("part", models(), ids=lambda part: part.name)
def test_parameters_are_those_that_the_publisher_names(part) -> None:  # type: ignore[no-untyped-def]
    made = part.model(part.formats[0])
    assert total_parameters(made) == pytest.approx(part.published_parameters.total, rel=0.03)
    assert active_parameters(made) == pytest.approx(part.published_parameters.active, rel=0.03)


@pytest.mark.parametrize(("part", "form"), EVERY, ids=lambda x: getattr(x, "format", ""))
def test_bytes_are_those_of_the_checkpoint(part, form) -> None:  # type: ignore[no-untyped-def]
    if form.checkpoint_bytes:
        assert weight_bytes(part.model(form)) == pytest.approx(form.checkpoint_bytes, rel=0.005)


def test_the_parts_of_the_weights_are_the_whole() -> None:
    kimi = model()
    embedding = kimi.hidden * kimi.vocabulary * kimi.widths.head
    whole = per_token_weight_bytes(kimi) + expert_bytes(kimi, kimi.experts) + embedding
    assert whole == pytest.approx(weight_bytes(kimi))


def test_bytes_of_a_step_are_the_closed_form() -> None:
    from physics_data import node

    kimi = model()
    made = step(kimi, node(), Layout(tensor_parallel=8), Load(concurrency=4))
    one = 3 * 7168 * 2048 * 0.5625
    assert made.expert_bytes == pytest.approx(60 * 384 * (1 - (1 - 8 / 384) ** 4) * one / 8)
    assert made.kv_bytes == pytest.approx(4 * 1536 * (512 + 64) * 2 * 61)
    assert made.dense_bytes == pytest.approx(per_token_weight_bytes(kimi) / 8)


def test_the_latent_is_whole_on_every_rank_and_heads_are_split_as_far_as_there_are_any() -> None:
    kimi, qwen = model(), model("Qwen3-235B-A22B")
    assert kv_bytes_per_token(kimi, 1, 4096) == kv_bytes_per_token(kimi, 8, 4096) == 70272
    one, four, eight = (kv_bytes_per_token(qwen, n, 4096) for n in (1, 4, 8))
    assert four == one / 4
    assert eight == four, "four heads cannot be split in eight"


def test_a_window_stops_the_growth_of_the_cache() -> None:
    oss = model("gpt-oss-120b")
    short, long = (n * kv_bytes_per_token(oss, 1, n) for n in (128, 12_800))
    assert long < 100 * short
    assert long == pytest.approx(short / 36 * 18 + 100 * short / 36 * 18)


KIMI = {
    "text_config": {
        "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 64,
        "num_key_value_heads": 64, "vocab_size": 163840, "n_routed_experts": 384,
        "num_experts_per_tok": 8, "n_shared_experts": 1, "moe_intermediate_size": 2048,
        "intermediate_size": 18432, "first_k_dense_replace": 1, "q_lora_rank": 1536,
        "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
        "quantization_config": {
            "quant_method": "compressed-tensors",
            "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 32}}},
        },
    }
}  # fmt: skip


def test_a_config_json_gives_the_model_that_is_known_by_name() -> None:
    read = model_of(KIMI, "Kimi-K2.6")
    assert not isinstance(read, str)
    known = model()
    assert total_parameters(read) == total_parameters(known)
    assert weight_bytes(read) == weight_bytes(known)
    assert read.expert_format == "int4"


@pytest.mark.parametrize(
    ("quantization", "expected"),
    [
        ({}, "bf16"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4"),
    ],
)
def test_the_format_of_a_checkpoint_is_read(quantization: dict[str, object], expected: str) -> None:
    dense = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 512,
             "intermediate_size": 128, "quantization_config": quantization}  # fmt: skip
    read = model_of(dense, "tiny")
    assert not isinstance(read, str)
    assert read.expert_format == expected
    assert read.expert_layers == 0


@pytest.mark.parametrize("broken", [{}, {"hidden_size": "x"}, {"num_hidden_layers": True}])
def test_a_config_that_lacks_something_says_what(broken: dict[str, object]) -> None:
    read = model_of(broken, "x")
    assert isinstance(read, str)
    assert "config.json has no usable num_hidden_layers" in read

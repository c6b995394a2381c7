"""Whatever a config or a command line holds, each check comes to an outcome and raises nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_gpus import FakeGpus
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import COMMAND, node

from triage.core.config import Config
from triage.core.doctor.catalogue import CHECKS
from triage.core.doctor.checks import examine
from triage.core.doctor.facts import Facts, Launch
from triage.core.machine.facts import Unavailable
from triage.core.machine.models import Model

KEYS = [
    "num_attention_heads", "num_key_value_heads", "intermediate_size", "moe_intermediate_size",
    "n_routed_experts", "vision_config", "text_config", "quantization_config", "rope_scaling",
    "max_position_embeddings", "auto_map", "architectures", "model_type", "kv_lora_rank",
    "qk_nope_head_dim", "vocab_size", "hidden_size", "linear_num_value_heads", "block_size",
    "weight_block_size", "quant_method", "bits", "config_groups", "factor", "speculators_x",
]  # fmt: skip
FLAGS = [
    "tp-size", "ep-size", "pp-size", "dp-size", "nnodes", "context-length", "hicache-size",
    "mem-fraction-static", "attention-backend", "kv-cache-dtype", "quantization", "deepep-mode",
    "speculative-algorithm", "speculative-eagle-topk", "speculative-num-steps", "page-size",
    "cuda-graph-bs-prefill", "json-model-override-args", "base-gpu-id", "moe-a2a-backend",
    "speculative-dspark-block-size", "enable-nccl-nvls", "enable-hierarchical-cache", "device",
]  # fmt: skip
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 10**30), st.floats(), st.sampled_from(["", "fp8", "awq", "llama"])
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=8,
)
configs = st.dictionaries(st.sampled_from(KEYS), values, max_size=12)
words = st.sampled_from(
    ["", "0", "1", "3", "8", "64", "-1", "x", "0.9", "1e9", "fp8", "EAGLE3", "trtllm_mla", "{", "²"]
)
settings_of = st.dictionaries(
    st.sampled_from(FLAGS), st.one_of(words, st.booleans(), st.lists(words, max_size=3).map(tuple)), max_size=10
)  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, nvml_library: Path) -> Facts:
    """The facts of a sound node, read once."""
    import ctypes

    folder = tmp_path_factory.mktemp("any")
    loaded = ctypes.CDLL(str(nvml_library))
    assert loaded is not None
    with pytest.MonkeyPatch.context() as patch:
        gpus = FakeGpus(nvml_library, folder)
        for name in ("FAKE_NVML", "FAKE_NVML_HELD"):
            patch.setenv(name, gpus.env[name])
        with node(folder, gpus, patch, {}) as made:
            facts = made.examine(COMMAND).facts
    assert not isinstance(facts.gpus, Unavailable)
    return facts


@settings(max_examples=60, deadline=None)
@given(config=configs, draft=configs, flags=settings_of)
def test_every_check_comes_to_an_outcome(
    sound: Facts, config: dict[str, Any], draft: dict[str, Any], flags: dict[str, Any]
) -> None:
    launch = Launch(
        config=Config.of(flags), program=("sglang",), env={"SGLANG_ENABLE_SPEC_V2": "1"}
    )
    model = Model(name="m", folder="/m", config=config, broken_json={}, weights=(), missing=())
    facts = replace(sound, launch=launch, model=model, draft=replace(model, config=draft))
    outcomes = examine(facts, CHECKS)
    assert len(outcomes) == len(CHECKS)
    for outcome in outcomes:
        assert outcome.state == "found" or not outcome.findings
        for finding in outcome.findings:
            assert finding.say
            assert finding.evidence

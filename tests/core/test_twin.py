"""What is made smaller, and what is left alone because nobody knows that it is safe."""

from __future__ import annotations

import pytest

from triage.core.config import Config, SetFlag, Value
from triage.core.twin import twin_of

LLAMA: dict[str, object] = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32}


def changes(
    flags: dict[str, Value], model: dict[str, object] | None, searched: tuple[str, ...] = ()
) -> dict[str, Value]:
    found = twin_of(Config.of({"model-path": "/m", **flags}), model, searched)
    if isinstance(found, str):
        return {}
    assert len(found.masks) == len(found.changes), "each change says what it hides"
    return {c.name: c.value for c in found.changes if isinstance(c, SetFlag)}


def test_a_plain_model_has_few_layers_dummy_weights_and_small_graphs() -> None:
    assert changes({}, LLAMA) == {
        "load-format": "dummy",
        "json-model-override-args": '{"num_hidden_layers":2}',
        "cuda-graph-max-bs-decode": "8",
    }


def test_the_dense_layers_in_front_stay_with_one_of_the_others() -> None:
    model = {
        "architectures": ["DeepseekV3ForCausalLM"],
        "num_hidden_layers": 61,
        "first_k_dense_replace": 3,
    }
    assert changes({}, model)["json-model-override-args"] == '{"num_hidden_layers":4}'


@pytest.mark.parametrize(
    ("flags", "model", "searched", "left"),
    [
        ({"load-format": "auto"}, LLAMA, (), "load-format"),
        ({}, LLAMA, ("load-format",), "load-format"),
        ({"quantization": "fp8"}, LLAMA, (), "load-format"),
        ({}, {**LLAMA, "quantization_config": {"quant_method": "fp8"}}, (), "load-format"),
        ({}, None, (), "load-format"),
        ({}, None, (), "json-model-override-args"),
        ({"pp-size": "2"}, LLAMA, (), "json-model-override-args"),
        ({}, LLAMA, ("pp-size",), "json-model-override-args"),
        ({"model-impl": "transformers"}, LLAMA, (), "json-model-override-args"),
        ({"speculative-algorithm": "EAGLE3"}, LLAMA, (), "json-model-override-args"),
        ({}, {**LLAMA, "layer_types": ["a", "b"]}, (), "json-model-override-args"),
        ({}, {**LLAMA, "architectures": ["OddForCausalLM"]}, (), "json-model-override-args"),
        ({}, {**LLAMA, "num_hidden_layers": 2}, (), "json-model-override-args"),
        ({}, {**LLAMA, "num_hidden_layers": "many"}, (), "json-model-override-args"),
        ({"cuda-graph-bs-decode": ("1",)}, LLAMA, (), "cuda-graph-max-bs-decode"),
        ({}, LLAMA, ("disable-cuda-graph",), "cuda-graph-max-bs-decode"),
        ({"device": "cpu"}, LLAMA, (), "cuda-graph-max-bs-decode"),
    ],
)  # fmt: skip
def test_what_is_not_known_to_be_safe_is_left_alone(
    flags: dict[str, Value], model: dict[str, object] | None, searched: tuple[str, ...], left: str
) -> None:
    assert left not in changes(flags, model, searched)


def test_a_configuration_without_a_safe_change_has_no_twin() -> None:
    found = twin_of(Config.of({"model-path": "/m", "device": "cpu"}), None, ())
    assert found == "nothing of it is known to be safe to make smaller"

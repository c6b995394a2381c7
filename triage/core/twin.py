"""A smaller model in the place of the real one: what is changed, and what that hides.

In:  a configuration, the model's config.json, the flags under search. Out: a Twin, or why none.
Not: launching it (triage.session.ladder), or whether its failure counts (it counts only where
     the same failure was seen in full).

Only what is known to be safe is made smaller: a flag that is set or searched for is left alone,
and so is a model whose layers are not all alike.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from triage.core.config import Change, Config, SetFlag
from triage.core.records import dataclass

# Models whose layers are alike, up to a few dense ones in front: any number of them is a model.
# Source: their `config.json` and the layer loops of SGLang 0.5.23's model files.
PLAIN = frozenset(
    [
        "LlamaForCausalLM", "MistralForCausalLM", "MixtralForCausalLM", "Qwen2ForCausalLM",
        "Qwen2MoeForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "DeepseekV2ForCausalLM",
        "DeepseekV3ForCausalLM",
    ]
)  # fmt: skip
# Keys of a config.json that name layers one by one; cutting layers would contradict them.
_BY_LAYER = ("layer_types", "layers_block_type", "hybrid_override_pattern", "attn_layer_indices")
_LEAST = 2  # layers; one alone takes other ways in some schedulers
_SMALL_GRAPHS = "8"
# Algorithms that read hidden states of layers by their number.
_BY_NUMBER = frozenset(["EAGLE3", "DFLASH", "DSPARK"])


@dataclass(frozen=True, slots=True)
class Twin:
    """What to change, and what a launch with it cannot show."""

    changes: tuple[Change, ...]
    masks: tuple[str, ...]

    def say(self) -> str:
        """The changes as they are typed."""
        shown = (f"--{c.name} {c.value}" for c in self.changes if isinstance(c, SetFlag))
        return " ".join(shown)


def twin_of(
    config: Config, model: Mapping[str, object] | None, searched: Collection[str]
) -> Twin | str:
    """The twin of a configuration, or in a few words why there is none that is known to be safe.

    Args:
        config: What would be launched in full.
        model: The content of the model's config.json; None if it cannot be read.
        searched: Names of the flags that the search sets or leaves out.
    """
    flags = config.flag_values()
    kept = flags.keys() | set(searched)
    changes: list[Change] = []
    masks: list[str] = []
    if "load-format" not in kept and "quantization" not in kept and not _quantized(model):
        changes.append(SetFlag("load-format", "dummy"))
        masks.append("weights that are missing, torn, or of another shape")
    layers = _layers(config, model, kept)
    if layers:
        override = json.dumps({"num_hidden_layers": layers}, separators=(",", ":"))
        changes.append(SetFlag("json-model-override-args", override))
        masks.append("a lack of memory, and what only some layers do")
    graphs = {name for name in kept if "cuda-graph" in name}
    backend = flags.get("attention-backend")
    if (
        not graphs
        and flags.get("device") != "cpu"
        and backend not in ("torch_native", "flex_attention")
    ):
        changes.append(SetFlag("cuda-graph-max-bs-decode", _SMALL_GRAPHS))
        masks.append("graphs of larger batches, and the memory that they take")
    if not changes:
        return "nothing of it is known to be safe to make smaller"
    return Twin(tuple(changes), tuple(masks))


def _quantized(model: Mapping[str, object] | None) -> bool:
    """Whether the weights are; values that were never trained take other ways there."""
    return model is None or bool(model.get("quantization_config"))


def _layers(config: Config, model: Mapping[str, object] | None, kept: Collection[str]) -> int:
    """How many layers are enough; 0 where they are left as they are."""
    flags = config.flag_values()
    touched = {"json-model-override-args", "pp-size", "model-impl", "enable-eplb"} & set(kept)
    if model is None or touched or flags.get("speculative-algorithm") in _BY_NUMBER:
        return 0
    architectures = model.get("architectures")
    known = isinstance(architectures, list) and set(map(str, architectures)) <= PLAIN
    if not known or not architectures or any(model.get(key) for key in _BY_LAYER):
        return 0
    have, dense = model.get("num_hidden_layers"), model.get("first_k_dense_replace", 0)
    if type(have) is not int or type(dense) is not int:
        return 0
    enough = max(_LEAST, dense + 1)
    return enough if enough < have else 0

"""How a model's experts are quantised: which source file of the engine takes them.

In:  a model's config.json, the quantisation that was asked for. Out: Scheme.
Not: which kernels that file uses (triage.installed.moe).

Source: `CompressedTensorsConfig.get_moe_scheme` and BASE_QUANTIZATION_METHODS of SGLang 0.5.23.
"""

from __future__ import annotations

from collections.abc import Mapping

from triage.core.inspection.facts import Model
from triage.core.records import dataclass

_FOLDER = "layers/quantization"
_COMPRESSED = f"{_FOLDER}/compressed_tensors/schemes/compressed_tensors"
# Methods that one file serves, whatever the checkpoint says beyond the name.
_FILES = {
    "moe_wna16": f"{_FOLDER}/moe_wna16.py",
    "w8a8_int8": f"{_FOLDER}/w8a8_int8.py",
    "w8a8_fp8": f"{_FOLDER}/w8a8_fp8.py",
    "blockwise_int8": f"{_FOLDER}/blockwise_int8.py",
    "humming": f"{_FOLDER}/humming.py",
}
_PACKED = 4  # bits that a group of weights is packed in


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """A quantisation in words, the file that serves it, and the keys that say so.

    `group` is how many weights share a scale along the input, 0 if that is not told.
    """

    name: str
    file: str
    keys: tuple[str, ...]
    group: int = 0


def scheme_of(model: Model, asked: str = "") -> Scheme | None:
    """The scheme of the experts; None where it is not known here or there is none."""
    given = model.values.get("quantization_config")
    config = given if isinstance(given, dict) else {}
    method = str(asked or config.get("quant_method", ""))
    key = f"config.json: {model.prefix}quantization_config.quant_method"
    if method in _FILES:
        return Scheme(
            name=method, file=_FILES[method], keys=("--quantization",) if asked else (key,)
        )
    if method != "compressed-tensors":
        return None
    groups = config.get("config_groups")
    first = next(iter(groups.items()), None) if isinstance(groups, dict) else None
    if first is None or not isinstance(first[1], dict):
        return None
    weights, inputs = first[1].get("weights"), first[1].get("input_activations")
    if not isinstance(weights, dict):
        return None
    key = f"config.json: {model.prefix}quantization_config.config_groups.{first[0]}.weights"
    return _compressed(weights, inputs, key)


def _compressed(weights: Mapping[str, object], inputs: object, key: str) -> Scheme | None:
    bits, kind, group = (weights.get(name) for name in ("num_bits", "type", "group_size"))
    size = group if isinstance(group, int) and group > 0 else 0
    keys = (f"{key}.num_bits", f"{key}.type")
    if kind == "int" and bits == _PACKED and inputs is None:
        return Scheme(
            name="INT4 (W4A16)", file=f"{_COMPRESSED}_wNa16_moe.py", keys=keys, group=size
        )
    if kind == "float" and bits == _PACKED:
        file = "w4a16_nvfp4_moe.py" if inputs is None else "w4a4_nvfp4_moe.py"
        return Scheme(name="NVFP4", file=f"{_COMPRESSED}_{file}", keys=keys, group=size)
    return None

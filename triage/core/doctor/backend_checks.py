"""Checks of backends that the command names: kernels for these GPUs and for this model.

In:  Facts with a launch. Out: CHECKS.
Not: sizes that do not divide (model_checks.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from triage.core.doctor.checks import Hit, Severity, check
from triage.core.doctor.facts import Facts
from triage.core.doctor.gpu_checks import used
from triage.core.machine.facts import Unavailable, known, known_or
from triage.core.machine.models import Model

MLA_BACKENDS = ("trtllm_mla", "cutlass_mla", "flashmla", "cutedsl_mla")
# Backend -> major compute capabilities that it has kernels for. Source: SGLang 0.5.23,
# arg_groups/attention_hook and overrides; fa3: sgl-project/sglang issue 12360
NEEDS_MAJOR: Mapping[str, tuple[int, ...]] = {
    "fa3": (8, 9),
    "flashmla": (9, 10),
    "cutlass_mla": (10,),
    "cutedsl_mla": (10,),
    "trtllm_mla": (10, 12),
    "trtllm_mha": (9, 10, 12),
    "fa4": (10, 11),
}
HYBRID_BACKENDS = ("trtllm_mha", "triton", "fa4")


def _backends(facts: Facts) -> list[str]:
    """The attention backends that the command names."""
    launch = known(facts.launch)
    names = ("attention-backend", "prefill-attention-backend", "decode-attention-backend")
    return list(dict.fromkeys(filter(None, (launch.text(name) for name in names))))


@check(
    "attention-backend",
    group="model",
    severity="error",
    sound="the attention backend has kernels for these GPUs and this model",
    breaks="the engine refuses the backend, or capture finds no kernel",
    source="https://github.com/sgl-project/sglang/issues/12360",
    prevents=("fa3-on-blackwell", "attention-backend-arch-gate", "trtllm-gen-attention-arch",
              "attention-backend-model-dims"),
)  # fmt: skip
def attention_backend(facts: Facts) -> Iterator[Hit]:
    """Backends named on the command line against the GPU's generation and the model's kind."""
    names = _backends(facts)
    if not names:
        return
    model = facts.model
    if not isinstance(model, Unavailable) and not isinstance(model.config, Unavailable):
        yield from _model_dims(names, model)
    for gpu in used(facts)[:1]:
        major, minor = known(gpu.capability)
        for name in names:
            needs = NEEDS_MAJOR.get(name)
            if needs and major not in needs:
                told: tuple[str, ...] = (
                    f"GPU {gpu.index}: {gpu.name}, compute capability {major}.{minor}",
                )
                fix = "leave --attention-backend out: the engine chooses one that fits"
                yield Hit(f"{name} has no kernels for {gpu.name}.", told, fix)
        if major in (10, 12) and not isinstance(model, Unavailable):
            hybrid = model.number("linear_num_value_heads") is not None
            for name in names:
                if hybrid and name not in HYBRID_BACKENDS:
                    told = (f"GPU {gpu.index}: {gpu.name}", "config.json: linear attention layers")
                    fix = f"--attention-backend {HYBRID_BACKENDS[0]}"
                    yield Hit(f"{name} is not supported for hybrid models on Blackwell.", told, fix)


def _model_dims(names: Sequence[str], model: Model) -> Iterator[Hit]:
    rank, nope = model.number("kv_lora_rank"), model.number("qk_nope_head_dim")
    for name in names:
        if name in MLA_BACKENDS and rank is None:
            told: tuple[str, ...] = ("config.json has no kv_lora_rank",)
            yield Hit(
                f"{name} is for MLA models, and this is none.", told, "--attention-backend fa3"
            )
        elif name == "trtllm_mla" and (rank, nope) != (512, 128):
            told = (f"config.json: kv_lora_rank {rank}, qk_nope_head_dim {nope}",)
            say = "trtllm_mla has kernels for kv_lora_rank 512 and qk_nope_head_dim 128 only."
            yield Hit(say, told, "--attention-backend triton")


@check(
    "kv-cache-dtype",
    group="model",
    severity="warning",
    sound="the attention backend reads this KV cache",
    breaks="capture fails in the attention kernel",
    source="https://github.com/sgl-project/sglang/issues/12197",
    prevents=("attention-backend-kv-dtype-unsupported", "dtype-mismatch-kernel"),
)
def kv_cache_dtype(facts: Facts) -> Iterator[Hit]:
    """MLA backends with FP8 caches or with float16."""
    launch = known(facts.launch)
    cache, dtype = launch.text("kv-cache-dtype"), launch.text("dtype")
    for name in _backends(facts):
        if name in ("cutlass_mla", "flashmla") and cache.startswith("fp8"):
            told: tuple[str, ...] = (f"--attention-backend {name}", f"--kv-cache-dtype {cache}")
            say = f"{name} was reported to fail with an FP8 cache."
            yield Hit(say, told, "--kv-cache-dtype auto")
        if name == "cutlass_mla" and dtype in ("float16", "half"):
            told = (f"--attention-backend {name}", f"--dtype {dtype}")
            yield Hit(f"{name} was reported to fail with {dtype}.", told, "--dtype bfloat16")


@check(
    "deepep",
    group="model",
    severity="error",
    sound="DeepEP has kernels for these GPUs and this mode",
    breaks="building the MoE layers or capture fails",
    source="https://github.com/sgl-project/sglang/issues/12320",
    prevents=("deepep-arch-assert", "deepep-normal-mode-cuda-graph"),
)
def deepep(facts: Facts) -> Iterator[Hit]:
    """DeepEP needs Hopper or later; its normal mode cannot be captured."""
    launch = known(facts.launch)
    if not launch.uses_deepep:
        return
    eager = launch.on("disable-cuda-graph") or launch.on("disable-decode-cuda-graph")
    if launch.text("deepep-mode") == "normal" and not eager:
        told: tuple[str, ...] = ("--deepep-mode normal", "decode graphs are on")
        severity: Severity = "warning"
        yield Hit("DeepEP's normal mode cannot be captured.", told, "--deepep-mode auto", severity)
    for gpu in used(facts)[:1]:
        capability = known_or(gpu.capability, (9, 0))
        if capability < (9, 0):
            told = (f"{gpu.name}: compute capability {capability[0]}.{capability[1]}",)
            yield Hit("DeepEP needs Hopper or later.", told, "--moe-a2a-backend none")


CHECKS = (attention_backend, kv_cache_dtype, deepep)

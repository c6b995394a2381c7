"""Checks of a checkpoint against the launch: sizes that do not divide, weights that do not fit.

In:  Facts with a model's config. Out: CHECKS.
Not: broken files (file_checks.py), backends (backend_checks.py), the draft (draft_checks.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from triage.core.doctor.checks import Hit, Severity, check
from triage.core.doctor.facts import Facts
from triage.core.doctor.gpu_checks import used
from triage.core.machine.facts import Unavailable, known
from triage.core.machine.models import Model

TILE = 128  # Source: Marlin kernels: min_thread_k; MoE kernels: BLOCK_SIZE_K
PREFILL_BUCKET = 2048  # Source: SGLang 0.5.23, arg_groups/cuda_graph_hook: its default
FITTED_SINCE = (0, 5, 14)  # Source: sgl-project/sglang PR 30206
_STRETCH = 10_000  # a larger factor is no scaling but a slip
EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
HEADS = ("num_attention_heads", "n_head", "n_heads")
# Widths that tensor parallelism cuts into equal parts, and that a block must divide afterwards.
DENSE_WIDTHS = ("intermediate_size", "share_expert_dim", "shared_expert_intermediate_size")
# One of a linear attention layer, so small that newer releases leave it whole.
SMALL, SMALL_SINCE = "linear_num_value_heads", (0, 5, 9)
MOE_WIDTHS = ("moe_intermediate_size", "expert_ffn_hidden_size")
# Quantisations that go by several names. Source: SGLang's override_quantization_method
SAME_QUANTIZATION = {
    "awq": {"awq", "awq_marlin", "moe_wna16"},
    "gptq": {"gptq", "gptq_marlin", "moe_wna16"},
    "fp8": {"fp8", "w8a8_fp8", "fbgemm_fp8"},
    "modelopt": {"modelopt", "modelopt_fp8", "modelopt_fp4"},
    "compressed-tensors": {"compressed-tensors", "compressed_tensors", "w8a8_int8", "w8a8_fp8"},
}


def _lower_tp(value: int, tp: int, step: int = 1) -> str:
    """The nearest usual smaller TP size with which a size divides, as a flag."""
    usual = (n for n in range(tp - 1, 0, -1) if tp % n == 0 or n & (n - 1) == 0)
    fits = (n for n in usual if value % n == 0 and (value // n) % step == 0)
    return f"--tp-size {next(fits, 1)}"


@check(
    "heads",
    group="model",
    severity="error",
    sound="attention heads divide by the TP size",
    breaks="building the model fails: not divisible",
    source="https://github.com/vllm-project/vllm/pull/52535",
    prevents=("heads-not-divisible-tp",),
)
def heads(facts: Facts) -> Iterator[Hit]:
    """Heads of the language model and of a vision tower; DP attention cuts into fewer parts."""
    launch, model = known(facts.launch), known(facts.model)
    config = known(model.config)
    parts = launch.tp
    if launch.on("enable-dp-attention"):
        parts = max(1, launch.tp // max(1, launch.number("dp-size", 1)))
    towers = {"attention": model.number(*HEADS)}
    vision = config.get("vision_config")
    if isinstance(vision, Mapping) and not launch.on("mm-enable-dp-encoder"):
        count = next((vision[n] for n in ("num_heads", *HEADS) if n in vision), None)
        towers["vision"] = count if isinstance(count, int) else None
    for tower, count in towers.items():
        if count and count % parts:
            yield Hit(
                f"{count} {tower} heads do not divide by {parts} ranks.",
                (f"config.json: {count} {tower} heads", f"--tp-size {launch.tp}"),
                _lower_tp(count, parts),
            )
    groups = model.number("num_key_value_heads")
    if groups and not (groups % parts == 0 or parts % groups == 0):
        yield Hit(
            f"{groups} key-value heads and {parts} ranks do not divide each other.",
            (f"config.json: num_key_value_heads {groups}", f"--tp-size {launch.tp}"),
            _lower_tp(groups, parts),
        )


@check(
    "experts",
    group="model",
    severity="error",
    sound="experts and ranks divide by the EP size",
    breaks="building the MoE layers fails: not divisible",
    source="https://github.com/vllm-project/vllm/issues/52435",
    prevents=("ep-experts-not-divisible",),
)
def experts(facts: Facts) -> Iterator[Hit]:
    """Experts, with the redundant ones, over EP ranks; EP ranks inside the TP ranks."""
    launch, model = known(facts.launch), known(facts.model)
    ep, count = launch.number("ep-size", 1), model.number(*EXPERTS)
    if ep < 2 or not count:  # noqa: PLR2004
        return
    extra = launch.number("ep-num-redundant-experts", 0)
    if (count + extra) % ep:
        need = (count + extra) // ep * ep + ep - count
        yield Hit(
            f"{count + extra} experts do not divide by {ep} ranks.",
            (f"config.json: {count} experts", f"expert parallelism over {ep}"),
            f"--ep-num-redundant-experts {need}, or another --ep-size",
        )
    if launch.tp % ep:
        told: tuple[str, ...] = (f"--tp-size {launch.tp}", f"--ep-size {ep}")
        yield Hit("The TP size does not divide by the EP size.", told, f"--ep-size {launch.tp}")


@check(
    "fp8-blocks",
    group="model",
    severity="error",
    sound="each rank's share is a whole number of quantisation blocks",
    breaks="building the model fails: not divisible by weight quantization block_n",
    source="https://github.com/sgl-project/sglang/issues/3448",
    prevents=("fp8-block-not-divisible",),
)
def fp8_blocks(facts: Facts) -> Iterator[Hit]:
    """Widths of a block-quantised checkpoint, cut by TP (dense) or TP/EP (experts)."""
    known(facts.launch)
    model = known(facts.model)
    known(model.config)
    shape = model.quantization().get("weight_block_size")
    if not isinstance(shape, Sequence) or not shape or not isinstance(shape[0], int):
        return
    yield from _cut(facts, model, int(shape[0]), "block", (*DENSE_WIDTHS, SMALL, *MOE_WIDTHS))


def _cut(facts: Facts, model: Model, block: int, what: str, names: Sequence[str]) -> Iterator[Hit]:
    """Widths that do not come to whole blocks once they are cut."""
    launch = known(facts.launch)
    tp, ep = launch.tp, max(1, launch.number("ep-size", 1))
    whole = launch.number("moe-dense-tp-size", 0) == 1  # each rank has its dense layers whole
    skipped = str(model.quantization().get("modules_to_not_convert", ""))
    for name in names:
        width = model.number(name)
        moe = name in MOE_WIDTHS
        parts = max(1, tp // ep) if moe else 1 if whole else tp
        if width is None or parts < 2:  # noqa: PLR2004
            continue
        severity: Severity | None = None
        if name == SMALL:
            if "in_proj" in skipped or "linear_attn" in skipped:
                continue
            version = facts.engine_version()
            severity = None if version and version < SMALL_SINCE else "warning"
        if width % parts or (width // parts) % block:
            share = f"{width // parts}" if width % parts == 0 else f"{width}/{parts}"
            fix = _lower_tp(width, parts, block)
            if name == SMALL:
                fix = "install sglang 0.5.9 or newer"
            yield Hit(
                f"{name} {width} over {parts} ranks is {share}, no multiple of the {what} {block}.",
                (f"config.json: {name} {width}, {what} {block}", f"--tp-size {tp}"),
                f"--ep-size {tp}, or {fix}" if moe else fix,
                severity,
            )


@check(
    "kernel-tiles",
    group="model",
    severity="error",
    sound="each rank's share fits the tiles of the 4-bit kernels",
    breaks="the first forward fails: size_k must be divisible, or min_thread_k",
    source="https://github.com/vllm-project/llm-compressor/issues/57",
    prevents=("marlin-dense-shape", "marlin-moe-shape"),
)
def kernel_tiles(facts: Facts) -> Iterator[Hit]:
    """4-bit checkpoints (AWQ, GPTQ, compressed-tensors) need shares of a multiple of 128."""
    known(facts.launch)
    model = known(facts.model)
    known(model.config)
    quantization = model.quantization()
    method = str(quantization.get("quant_method", "")).lower()
    groups = quantization.get("config_groups")
    bits = quantization.get("bits", quantization.get("w_bit"))
    if isinstance(groups, Mapping):
        weights = [g.get("weights") for g in groups.values() if isinstance(g, Mapping)]
        bits = next((w.get("num_bits") for w in weights if isinstance(w, Mapping)), bits)
    if method in ("awq", "gptq", "compressed-tensors") and bits in (4, None):
        # Of a model with experts often only these are quantised, whatever the config says first.
        only = model.number(*EXPERTS) is not None and method == "compressed-tensors"
        yield from _cut(facts, model, TILE, "tile", (*(() if only else DENSE_WIDTHS), *MOE_WIDTHS))


@check(
    "context-length",
    group="model",
    severity="error",
    sound="the context length is within what the model was made for",
    breaks="the engine refuses the context length",
    source="https://github.com/sgl-project/sglang/pull/1778",
    prevents=("context-length-over-derived",),
)
def context_length(facts: Facts) -> Iterator[Hit]:
    """--context-length against max_position_embeddings, stretched by RoPE scaling."""
    launch, model = known(facts.launch), known(facts.model)
    wanted, derived = launch.number("context-length", 0), derived_context(model)
    allow = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"
    if wanted and derived and wanted > derived and launch.env.get(allow, "0") in ("", "0"):
        yield Hit(
            f"--context-length {wanted} is longer than the model's {derived}.",
            (f"config.json: {derived} positions",),
            f"--context-length {derived}",
        )


def derived_context(model: Model) -> int:
    """How many positions a model has, as far as its config tells; 0 if it does not."""
    known(model.config)
    positions = model.number(
        "max_position_embeddings", "max_sequence_length", "seq_length", "model_max_length"
    )
    scaling = model.text_config().get("rope_scaling")
    if positions and isinstance(scaling, Mapping):
        factor, kind = scaling.get("factor"), scaling.get("rope_type", scaling.get("type"))
        original = scaling.get("original_max_position_embeddings")
        # llama3 and yarn with their original length have counted the factor in already
        sane = isinstance(factor, int | float) and 0 < factor < _STRETCH
        if sane and kind not in ("llama3", "mrope") and not original:
            return int(positions * factor)  # type: ignore[operator]  # sane: it is a number
    return positions or 0


@check(
    "prefill-bucket",
    group="model",
    severity="warning",
    sound="the context is no shorter than the largest prefill graph",
    breaks="capturing prefill graphs reads past the positions: CUBLAS or illegal access",
    source="https://github.com/sgl-project/sglang/pull/30206",
    prevents=("prefill-graph-context-shorter", "cublas-exec-failed-piecewise-small-context"),
)
def prefill_bucket(facts: Facts) -> Iterator[Hit]:
    """A context shortened for a quick test is itself a reason to fail."""
    launch = known(facts.launch)
    context = launch.number("context-length", 0)
    off = launch.on("disable-prefill-cuda-graph") or launch.on("disable-cuda-graph")
    if not context or off or launch.text("cuda-graph-backend-prefill") == "disabled":
        return
    sizes = launch.get("cuda-graph-bs-prefill")
    listed = [int(s) for s in sizes if s.isdigit()] if isinstance(sizes, tuple) else []
    largest = max(listed, default=0)
    for name in ("cuda-graph-max-bs-prefill", "piecewise-cuda-graph-max-tokens"):
        largest = largest or launch.number(name, 0)
    largest = largest or PREFILL_BUCKET
    if context < largest:
        version = facts.engine_version()
        yield Hit(
            f"--context-length {context} is shorter than the largest prefill graph, {largest}.",
            (f"largest prefill graph: {largest} tokens",),
            f"--cuda-graph-max-bs-prefill {context}, or --context-length {largest}",
            "error" if version and version < FITTED_SINCE else None,
        )


@check(
    "remote-code",
    group="model",
    severity="warning",
    sound="the checkpoint's own code may run, or is not needed",
    breaks="reading the config fails, or another class is built than the checkpoint means",
    source="https://github.com/sgl-project/sglang/pull/28693",
    prevents=("trust-remote-code",),
)
def remote_code(facts: Facts) -> Iterator[Hit]:
    """The config names classes in files of the checkpoint, and the command does not allow them."""
    launch, model = known(facts.launch), known(facts.model)
    named = known(model.config).get("auto_map")
    if isinstance(named, Mapping) and "AutoConfig" in named and not launch.on("trust-remote-code"):
        told: tuple[str, ...] = (f"config.json: auto_map {named['AutoConfig']}",)
        yield Hit("The checkpoint brings its own code.", told, "--trust-remote-code")


@check(
    "model-type",
    group="model",
    severity="error",
    sound="the installed packages know the type of the model",
    breaks="reading the config fails with a KeyError of the model type",
    source="https://github.com/sgl-project/sglang/issues/6732",
    prevents=("transformers-model-type-unknown", "spec-draft-config-invalid"),
)
def model_type(facts: Facts) -> Iterator[Hit]:
    """model_type against what transformers and the engine register, for target and draft."""
    launch = known(facts.launch)
    types = known(known(facts.python).model_types)
    for model in (known(facts.model), facts.draft):
        if isinstance(model, Unavailable) or isinstance(model.config, Unavailable):
            continue
        kind = str(model.config.get("model_type", ""))
        own = isinstance(model.config.get("auto_map"), Mapping)
        if kind and kind not in types and not (own and launch.on("trust-remote-code")):
            told: tuple[str, ...] = (
                f"config.json: model_type {kind}",
                f"{len(types)} types are registered",
            )
            fix = "--trust-remote-code" if own else "install a newer sglang and transformers"
            yield Hit(f"No installed package knows the model type {kind}.", told, fix)


@check(
    "architecture",
    group="model",
    severity="error",
    sound="the engine has the model's class",
    breaks="building the model fails: architectures are not supported",
    source="https://github.com/sgl-project/sglang/issues/5441",
    prevents=("arch-unsupported", "arch-registry-import-error"),
)
def architecture(facts: Facts) -> Iterator[Hit]:
    """The classes that config.json asks for against those in the engine's models folder."""
    python, model = known(facts.python), known(facts.model)
    known(model.config)
    defined = known(python.architectures)
    asked = model.architectures()
    impl = known(facts.launch).text("model-impl")
    if asked and not set(asked) & defined and impl != "transformers":
        version = python.version_of("sglang")
        told: tuple[str, ...] = (
            f"config.json: {', '.join(asked)}",
            f"sglang {version}: {len(defined)} classes",
        )
        fix = "install a newer sglang, or --model-impl transformers"
        yield Hit(f"sglang {version} has no {asked[0]}.", told, fix)


@check(
    "quantization",
    group="model",
    severity="error",
    sound="--quantization is that of the checkpoint",
    breaks="the engine refuses the pair, or reads the weights wrongly",
    source="https://github.com/sgl-project/sglang/issues/1792",
    prevents=("quant-method-mismatch",),
)
def quantization(facts: Facts) -> Iterator[Hit]:
    """A method named on the command line against the one in the config."""
    launch, model = known(facts.launch), known(facts.model)
    known(model.config)
    asked = launch.text("quantization")
    stored = str(model.quantization().get("quant_method", "")).lower()
    same = next((names for names in SAME_QUANTIZATION.values() if stored in names), {stored})
    if asked and stored and asked not in same:
        told: tuple[str, ...] = (f"--quantization {asked}", f"config.json: quant_method {stored}")
        fix = "leave --quantization out"
        yield Hit(f"The checkpoint is quantised by {stored}, not by {asked}.", told, fix)


@check(
    "weights-fit",
    group="model",
    severity="error",
    sound="the weights fit into the GPUs",
    breaks="loading runs out of memory, or leaves nothing for the KV cache",
    source="https://github.com/sgl-project/sglang/issues/4330",
    prevents=("weight-oom", "kv-pool-no-room", "kv-pool-no-memory-left", "draft-weight-oom"),
)
def weights_fit(facts: Facts) -> Iterator[Hit]:
    """Bytes of the weight files for each rank against its GPU and --mem-fraction-static."""
    launch, model = known(facts.launch), known(facts.model)
    totals = [known(gpu.memory_total_mib) for gpu in used(facts)]
    if not totals or not model.weights:
        return
    draft = 0 if isinstance(facts.draft, Unavailable) else facts.draft.weight_mib
    ranks = launch.tp * max(1, launch.number("pp-size", 1))
    each = model.weight_mib / ranks + draft / launch.tp
    text = launch.text("mem-fraction-static")
    share = float(text) if text.replace(".", "", 1).isdigit() else 1.0
    room = min(totals) * share
    if each > room:
        need = next((n for n in (2, 4, 8, 16, 32) if (model.weight_mib / n) < 0.8 * min(totals)), 0)
        limit = f"--mem-fraction-static {text} of " if text else ""
        yield Hit(
            f"The weights take {each / 1024:.1f} GiB for each rank, and"
            f" {room / 1024:.1f} GiB are allowed.",
            (f"{(model.weight_mib + draft) / 1024:.1f} GiB of weights over {ranks} ranks",
             f"{limit}{min(totals) / 1024:.1f} GiB"),
            f"--tp-size {need}" if need > launch.tp else "a larger --mem-fraction-static",
        )  # fmt: skip


CHECKS = (
    heads, experts, fp8_blocks, kernel_tiles, context_length, prefill_bucket, remote_code,
    model_type, architecture, quantization, weights_fit,
)  # fmt: skip

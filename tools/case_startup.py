"""What SGLang prints on its way up, as far as each rank comes.

In:  a Log with its Spec, and how far each rank comes. Out: lines in the Log.
Not: vLLM (case_vllm.py) or what goes wrong (case_failure.py).

Source: log calls of SGLang 0.5.23; landmark lines of older releases in public reports.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from case_spec import Spec
from case_text import MAIN, Log

from triage.core.phases import order

_TABLE = Path(__file__).resolve().parents[1] / "triage/knowledge/flags/sglang-0.5.23.yaml"
# model -> (class, shards, GB of weights, GB of a GPU)
MODELS: dict[str, tuple[str, int, float, float]] = {
    "DeepSeek-R1": ("DeepseekV3ForCausalLM", 163, 642.0, 178.2),
    "DeepSeek-V3.2": ("DeepseekV32ForCausalLM", 163, 642.0, 178.2),
    "Kimi-K2.6": ("KimiK25ForConditionalGeneration", 62, 560.0, 267.1),
    "GLM-5.2": ("GlmMoeDsaForCausalLM", 92, 700.0, 178.2),
    "Qwen3-235B-A22B": ("Qwen3MoeForCausalLM", 118, 438.0, 139.1),
    "Qwen3-8B": ("Qwen3ForCausalLM", 5, 15.3, 79.2),
    "Qwen2.5-VL-7B": ("Qwen2_5_VLForConditionalGeneration", 5, 15.6, 79.2),
    "Llama-3.3-70B": ("LlamaForCausalLM", 30, 131.4, 79.2),
    "gpt-oss-120b": ("GptOssForCausalLM", 15, 60.8, 139.1),
    "Mixtral-8x7B": ("MixtralForCausalLM", 19, 86.9, 79.2),
}
_SCAN = (
    ("midashenglm", "No module named 'torchaudio'"),
    ("glm_asr", "No module named 'torchaudio'"),
    ("inkling", "No module named 'cutlass'"),
    ("mindspore", "MindSpore is not installed"),
    ("phi4mm", "cannot import name 'SlidingWindowCache' from 'transformers.cache_utils'"),
)
_MID_KEYS = (  # noqa: SIM905  readable so
    "model_path tokenizer_path tokenizer_mode skip_tokenizer_init load_format trust_remote_code"
    " context_length is_embedding revision host port skip_server_warmup nccl_port dtype"
    " quantization kv_cache_dtype mem_fraction_static max_running_requests max_total_tokens"
    " chunked_prefill_size max_prefill_tokens schedule_policy schedule_conservativeness page_size"
    " device tp_size pp_size stream_interval random_seed watchdog_timeout dist_timeout"
    " base_gpu_id gpu_id_step log_level log_requests crash_dump_folder enable_metrics api_key"
    " served_model_name chat_template reasoning_parser tool_call_parser dp_size"
    " load_balance_method dist_init_addr nnodes node_rank json_model_override_args"
    " preferred_sampling_params enable_lora max_lora_rank lora_paths attention_backend"
    " sampling_backend grammar_backend speculative_algorithm speculative_draft_model_path"
    " speculative_num_steps speculative_eagle_topk speculative_num_draft_tokens ep_size"
    " moe_a2a_backend moe_runner_backend deepep_mode enable_eplb enable_hierarchical_cache"
    " hicache_ratio hicache_size disable_radix_cache cuda_graph_max_bs cuda_graph_bs"
    " disable_cuda_graph disable_cuda_graph_padding enable_nccl_nvls enable_symm_mem"
    " enable_tokenizer_batch_encode disable_outlines_disk_cache disable_custom_all_reduce"
    " enable_mscclpp disable_overlap_schedule enable_mixed_chunk enable_dp_attention"
    " enable_two_batch_overlap enable_torch_compile torch_compile_max_bs torchao_config"
    " enable_p2p_check triton_attention_reduce_in_fp32 num_continuous_decode_steps"
    " delete_ckpt_after_loading enable_memory_saver allow_auto_truncate"
    " enable_custom_logit_processor enable_flashinfer_allreduce_fusion disaggregation_mode"
    " disaggregation_transfer_backend disaggregation_bootstrap_port disaggregation_ib_device"
).split()


def resolved(spec: Spec) -> dict[str, Any]:
    """The resolved arguments: the defaults of 0.5.23 with the description's changes."""
    values: dict[str, Any] = {}
    for flag in _flags():
        default = False if flag.get("style") == "switch" else flag.get("default")
        values[flag["name"].replace("-", "_")] = default
    arch = MODELS[spec.model]
    values |= {
        "model_path": f"/models/{spec.model}",
        "tokenizer_path": f"/models/{spec.model}",
        "served_model_name": f"/models/{spec.model}",
        "host": "0.0.0.0",
        "random_seed": spec.random.randrange(10**9),
        "mem_fraction_static": 0.86 if arch[3] > 100 else 0.88,
        "tp_size": spec.tp,
        "dp_size": spec.attn_dp if spec.attn_dp > 1 and spec.style != "new" else spec.dp,
        "ep_size": spec.ep,
        "pp_size": spec.pp,
        "nnodes": spec.nodes,
        "chunked_prefill_size": 16384 if arch[3] > 150 else 8192,
        "attention_backend": "trtllm_mla" if arch[3] > 150 else "fa3",
    }
    if spec.style == "new":
        values["attn_dp_size"] = spec.attn_dp
    else:
        values["enable_dp_attention"] = spec.attn_dp > 1
    if spec.pd:
        values["disaggregation_mode"] = spec.pd
    return values | {name.replace("-", "_"): value for name, value in spec.flags.items()}


_CACHE: list[dict[str, Any]] = []


def _flags() -> list[dict[str, Any]]:
    if not _CACHE:
        _CACHE.extend(
            yaml.load(_TABLE.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))[
                "flags"
            ]
        )
    return _CACHE  # fmt: skip


def dump(log: Log) -> None:
    """The line with the resolved arguments."""
    values = resolved(log.spec)
    if log.spec.style == "new":
        text = f"server_args={values!r}"
    else:
        extra = [name.replace("-", "_") for name in log.spec.flags]
        names = [*_MID_KEYS, *(name for name in extra if name not in _MID_KEYS)]
        inner = ", ".join(f"{name}={values.get(name)!r}" for name in names)
        text = f"server_args=ServerArgs({inner})"
    log.raw(log.stamp() + text, kind="dump")


def start(log: Log, reached: dict[int, str]) -> None:
    """Everything up to the phase that each scheduler reaches; MAIN's phase is for the rest."""
    spec = log.spec
    furthest = max(reached.values(), key=order)
    last = order(furthest)
    _imports(log, entered=last > order("import"))
    if last < order("arg-validation"):
        return
    log.wait(3)
    _decisions(log)
    if last < order("config-load"):
        return
    log.wait(0.6)
    dump(log)
    log.wait(1)
    if last >= order("tokenizer-processor") and furthest != "tokenizer-processor":
        log.say("Using default HuggingFace chat template with detected content format: string")
    steps: list[tuple[str, Callable[[Log, list[int]], None]]] = [
        ("process-spawn", _spawned),
        ("dist-init", _dist),
        ("model-construct", _construct),
        ("weight-load", _weights),
        ("lora-init", _loaded),
        ("attn-backend-init", _pool),
        ("flashinfer-autotune", _autotune),
        ("graph-capture", _capture),
        ("prefill-graph-capture", _capture_prefill),
        ("draft-graph-capture", _capture_draft),
        ("scheduler-init", _scheduled),
    ]
    graphs = not spec.flags.get("disable-cuda-graph")
    for phase, print_step in steps:
        if not graphs and phase.endswith("capture"):
            continue
        if phase == "draft-graph-capture" and not spec.spec:
            continue
        here = _shuffled(log, [i for i in range(spec.world) if _passes(reached[i], phase)])
        if here:
            print_step(log, here)
    if last >= order("pd-init") and spec.pd:
        _disaggregated(log)
    if last >= order("warmup-or-first-forward"):
        _served(log, ready=furthest == "serving")


def _passes(reached: str, phase: str) -> bool:
    # The draft's phases come before the pool's, in which its weights are loaded.
    return order(reached) >= order(phase)


def _shuffled(log: Log, ranks: list[int]) -> list[int]:
    ranks = list(ranks)
    log.spec.random.shuffle(ranks)
    return ranks


def _imports(log: Log, *, entered: bool) -> None:
    log.raw(f"{log.site}/torch/cuda/__init__.py:61: FutureWarning: The pynvml package is deprecated."
            " Please install nvidia-ml-py instead. If you did not install pynvml directly, please"
            " report this to the maintainers of the package that installed pynvml for you.\n"
            "  import pynvml  # type: ignore[import]")  # fmt: skip
    if log.spec.style == "new" and entered:
        log.raw(f"{log.sglang}/launch_server.py:71: UserWarning: 'python -m sglang.launch_server' is"
                " still supported, but 'sglang serve' is the recommended entrypoint.\n"
                "  Example: sglang serve --model-path <model> [options]\n  warnings.warn(")  # fmt: skip
    if log.spec.style == "old":
        log.raw(
            f"INFO {log.now:%m-%d %H:%M:%S} __init__.py:190] Automatically detected platform cuda."
        )


def _decisions(log: Log) -> None:
    if log.spec.style == "new":
        log.say("Fail to set RLIMIT_NOFILE: current limit exceeds maximum limit")
        log.say("Attention backend not explicitly specified. Use"
                f" {resolved(log.spec)['attention_backend']} backend by default.")  # fmt: skip
    if log.spec.attn_dp > 1:
        log.say("DP attention is enabled. The chunked prefill size is adjusted to"
                " 4096 to avoid MoE kernel issues.")  # fmt: skip
    if log.spec.ep > 1 and log.spec.style != "old":
        log.say("Use flashinfer_trtllm as MoE runner backend on sm100 for"
                f" {MODELS[log.spec.model][0]}")  # fmt: skip


def _spawned(log: Log, ranks: list[int]) -> None:
    log.wait(9)
    if log.spec.style == "new":
        for _ in ranks:
            log.raw(f"{log.site}/transformers/utils/hub.py:110: FutureWarning: Using"
                    " `TRANSFORMERS_CACHE` is deprecated and will be removed in v5 of Transformers."
                    " Use `HF_HOME` instead.\n  warnings.warn(")  # fmt: skip


def _dist(log: Log, ranks: list[int]) -> None:
    spec = log.spec
    for i in ranks:
        log.wait(0.2)
        if spec.style == "new":
            log.say("Init parallel begin.", i)
        else:
            log.say("Init torch distributed begin.", i)


def _construct(log: Log, ranks: list[int]) -> None:
    """The rest of dist-init belongs to those that leave it."""
    spec = log.spec
    if spec.world > 1:
        for i in ranks:
            log.raw(f"[Gloo] Rank {i} is connected to {spec.world - 1} peer ranks. Expected number of"
                    f" connected peer ranks is : {spec.world - 1}", i)  # fmt: skip
        log.say("sglang is using nccl==2.28.9", min(ranks))
    if spec.nccl:
        _nccl(log, ranks)
    log.wait(2.4)
    for i in ranks:
        log.wait(0.05)
        mem = 0.9 + 0.03 * i
        if spec.style == "new":
            log.say(f"Init parallel ends. elapsed={3.1 + i * 0.07:.2f} s", i)
            log.say(f"Memory baseline taken. mem usage={mem:.2f} GB", i)
        elif spec.style == "mid":
            log.say(f"Init torch distributed ends. mem usage={mem:.2f} GB", i)
        else:
            log.say(f"Load weight begin. avail mem={MODELS[spec.model][3] - mem:.2f} GB", i)
    if spec.style != "old":
        for i in ranks:
            for module, why in _SCAN:
                log.say(f"Ignore import error when loading sglang.srt.models.{module}: {why}", i)
        log.wait(1)
        for i in ranks:
            log.say(f"Load weight begin. avail mem={MODELS[spec.model][3] - 1.2:.2f} GB", i)


def _nccl(log: Log, ranks: list[int]) -> None:
    gpus = max(1, log.spec.world // log.spec.nodes)
    for i in ranks:
        pid, gpu = log.pid_of(i), i % gpus
        head = f"{log.node}:{pid}:{pid} [{gpu}] NCCL INFO "
        for text in (
            "Bootstrap: Using eth0:10.0.0.7<0>",
            "cudaDriverVersion 13000",
            "NCCL version 2.28.9+cuda13.0",
            "NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin.",
            "Failed to open libibverbs.so[.1]",
            "NET/Socket : Using [0]eth0:10.0.0.7<0>",
            "Using network Socket",
            f"ncclCommInitRank comm 0x5581a{i}f0 rank {i} nranks {log.spec.world} cudaDev {gpu}"
            f" nvmlDev {gpu} busId {gpu + 1}b000 commId 0x7af1c0de - Init START",
            f"MNNVL busId 0x{gpu + 1}b000 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0x0",
            f"NVLS multicast support is available on dev {gpu}",
            f"comm 0x5581a{i}f0 rank {i} nRanks {log.spec.world} nNodes {log.spec.nodes} localRanks"
            f" {gpus} localRank {gpu} MNNVL 0",
            f"Channel 00/24 : {' '.join(str((i + k) % log.spec.world) for k in range(log.spec.world))}",
            "P2P Chunksize set to 524288",
            f"Channel 00/0 : {i}[{gpu}] -> {(i + 1) % log.spec.world}[{(gpu + 1) % gpus}] via P2P/CUMEM",
            "Connected all rings, use ring PXN 0 GDR 1",
            "threadThresholds 8/8/64 | 64/8/64 | 512 | 512",
            "24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer",
            f"ncclCommInitRank comm 0x5581a{i}f0 rank {i} nranks {log.spec.world} cudaDev {gpu}"
            f" nvmlDev {gpu} busId {gpu + 1}b000 commId 0x7af1c0de - Init COMPLETE",
        ):
            log.raw(head + text, i)


def bar(label: str, total: int, upto: int, *, unit: str = "") -> str:
    """A progress bar as tqdm draws it over itself: states on one line, between returns."""
    steps = sorted({0, *range(0, upto, max(1, total // 9)), upto})
    return "\r".join(
        f"{label}{step * 100 // total:4d}% Completed | {step}/{total}"
        f" [{step // 60:02d}:{step % 60:02d}<{(total - step) // 60:02d}:{(total - step) % 60:02d},"
        f"  1.{step % 10}0s/it]{unit}"
        for step in steps
    )


def _weights(log: Log, ranks: list[int]) -> None:
    shards = MODELS[log.spec.model][1]
    label = "Multi-thread loading shards:" if log.spec.style == "new" else (
        "Loading safetensors checkpoint shards:")  # fmt: skip
    log.wait(1)
    log.raw(bar(label, shards, max(1, shards // 3)), min(ranks))


def _loaded(log: Log, ranks: list[int]) -> None:
    arch, shards, weights, memory = MODELS[log.spec.model]
    spec = log.spec
    label = "Multi-thread loading shards:" if spec.style == "new" else (
        "Loading safetensors checkpoint shards:")  # fmt: skip
    log.wait(shards * 0.9)
    log.raw(bar(label, shards, shards), min(ranks))
    own = weights / (spec.tp * spec.pp)
    for i in ranks:
        log.wait(0.1)
        left = memory - 1.2 - own
        if spec.style == "new":
            log.say(f"Load weight end. elapsed={shards * 0.9:.2f} s, type={arch}, quant=fp8,"
                    f" avail mem={left:.2f} GB, mem usage={own:.2f} GB.", i)  # fmt: skip
        else:
            usage = f", mem usage={own:.2f} GB." if spec.style == "mid" else ""
            log.say(
                f"Load weight end. type={arch}, dtype=torch.bfloat16, avail mem={left:.2f} GB{usage}",
                i,
            )
    if spec.spec:
        for i in ranks:
            log.say(f"Load weight begin. avail mem={memory - 1.2 - own:.2f} GB", i)
        for i in ranks:
            log.say("Load weight end. elapsed=4.20 s, type=DraftModelForCausalLM,"
                    f" avail mem={memory - 2.4 - own:.2f} GB, mem usage=1.20 GB.", i)  # fmt: skip


def _pool(log: Log, ranks: list[int]) -> None:
    _, _, weights, memory = MODELS[log.spec.model]
    left = max(6.0, memory * 0.88 - weights / (log.spec.tp * log.spec.pp))
    log.wait(0.4)
    for i in ranks:
        if log.spec.style == "mid":
            log.say("Using KV cache dtype: torch.bfloat16", i)
        if log.spec.style != "old":
            kind = "dtype: torch.bfloat16, " if log.spec.style == "new" else ""
            log.say(f"KV Cache is allocated. {kind}#tokens: {int(left * 14000)}, K size: {left / 2:.2f} GB,"
                    f" V size: {left / 2:.2f} GB", i)  # fmt: skip
    for i in ranks:
        log.say(f"Memory pool end. avail mem={memory * 0.11:.2f} GB", i)


def _autotune(log: Log, ranks: list[int]) -> None:
    if log.spec.style != "new":
        return
    for i in ranks:
        log.say(
            "Running FlashInfer autotune with cache: /root/.cache/sglang/flashinfer/autotune.json",
            i,
        )


def _capture(log: Log, ranks: list[int]) -> None:
    spec, free = log.spec, MODELS[log.spec.model][3] * 0.108
    if spec.style == "new":
        log.wait(18)
        for i in ranks:
            log.say("FlashInfer autotune completed.", i)
    for i in ranks:
        log.wait(0.05)
        if spec.style == "new":
            log.say("Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1,"
                    f" avail mem={free:.2f} GB", i)  # fmt: skip
        else:
            log.say(
                f"Capture cuda graph begin. This can take up to several minutes. avail mem={free:.2f} GB",
                i,
            )
    if spec.style == "mid":
        log.say("Capture cuda graph bs [1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104,"
                " 112, 120, 128, 136, 144, 152, 160]", min(ranks))  # fmt: skip
    log.raw(_capture_bar(free, 36, 3), min(ranks))


def _capture_bar(free: float, total: int, upto: int) -> str:
    return "\r".join(
        f"Capturing batches (bs={256 - 8 * k} avail_mem={free - 0.02 * k:.2f} GB):"
        f" {k * 100 // total:3d}%|{'█' * (k // 4):<9}| {k}/{total} [00:{k:02d}<00:{total - k:02d},"
        f"  1.{k % 10}2s/it]"
        for k in range(upto)
    )


def _captured(log: Log, ranks: list[int], what: str) -> None:
    free = MODELS[log.spec.model][3] * 0.095
    log.wait(11)
    for i in ranks:
        if log.spec.style == "new":
            log.say(f"Capture {what} CUDA graph end. elapsed=11.20 s, mem usage=2.10 GB,"
                    f" avail mem={free:.2f} GB.", i)  # fmt: skip
        else:
            log.say("Capture cuda graph end. Time elapsed: 11.20 s. mem usage=2.10 GB."
                    f" avail mem={free:.2f} GB.", i)  # fmt: skip


def _capture_prefill(log: Log, ranks: list[int]) -> None:
    _captured(log, ranks, "target decode")
    free = MODELS[log.spec.model][3] * 0.095
    for i in ranks:
        if log.spec.style == "new":
            log.say("Capture target prefill CUDA graph begin. backend=breakable, num_tokens=[4, 8, 12,"
                    f" 16, 20, 24, 28, 32, 48, 64, 80, 96], avail mem={free:.2f} GB", i)  # fmt: skip
        elif log.spec.style == "mid" and log.spec.flags.get("enable-piecewise-cuda-graph"):
            log.say("Capture cuda graph num tokens [4, 8, 12, 16, 20, 24, 28, 32, 48, 64]", i)


def _capture_draft(log: Log, ranks: list[int]) -> None:
    if log.spec.style == "new":
        _captured(log, ranks, "target prefill")
    for i in ranks:
        if log.spec.style == "new":
            log.say("Capture draft decode CUDA graph begin. backend=full, num_tokens_per_req=4,"
                    f" avail mem={MODELS[log.spec.model][3] * 0.09:.2f} GB", i)  # fmt: skip
        else:
            log.say("Capture draft cuda graph begin. This can take up to several minutes."
                    f" avail mem={MODELS[log.spec.model][3] * 0.09:.2f} GB", i)  # fmt: skip


def _scheduled(log: Log, ranks: list[int]) -> None:
    spec = log.spec
    if not spec.flags.get("disable-cuda-graph") and (spec.spec or spec.style == "new"):
        _captured(log, ranks, "draft decode" if spec.spec else "target prefill")
    memory = MODELS[spec.model][3]
    heads = ranks if spec.dp > 1 or spec.attn_dp > 1 else [min(ranks)]
    for i in heads:
        log.say(f"max_total_num_tokens={int(memory * 5000)}, chunked_prefill_size=8192,"
                " max_prefill_tokens=16384, max_running_requests=2048, context_len=131072,"
                f" available_gpu_mem={memory * 0.09:.2f} GB", i)  # fmt: skip
    if spec.style == "new":
        for i in ranks:
            log.say("Tree cache initialized: source=default impl=UnifiedRadixCache hybrid_swa=False"
                    " hybrid_ssm=False hicache_attached=False", i)  # fmt: skip


def _disaggregated(log: Log) -> None:
    if log.spec.pd == "prefill":
        log.say("CommonKVBootstrapServer started successfully")


def _served(log: Log, *, ready: bool) -> None:
    spec = log.spec
    log.wait(0.5)
    if spec.style == "new":
        log.say("Engine startup timings (s): load_weight=140.20, kv_cache_allocation=0.89,"
                " scheduler_e2e=190.10, cuda_graph={prefill=11.20, decode=11.20, target_verify=0.00,"
                " draft_prefill=0.00, draft_decode=0.00, draft_extend=0.00}, tokenizer_e2e=196.30")  # fmt: skip
    log.say(f"INFO:     Started server process [{log.pid_of(MAIN)}]")
    log.say("INFO:     Waiting for application startup.")
    log.say("INFO:     Application startup complete.")
    log.say("INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)")
    path = "/model_info" if spec.style == "new" else "/get_model_info"
    for k in range(3):
        log.say(
            f'INFO:     127.0.0.1:{40616 + k * 14} - "GET /health HTTP/1.1" 503 Service Unavailable'
        )
        log.wait(0.5)
    log.say(f'INFO:     127.0.0.1:40640 - "GET {path} HTTP/1.1" 200 OK')
    if not ready:
        return
    log.say("Prefill batch. #new-seq: 1, #new-token: 7, #cached-token: 0, token usage: 0.00,"
            " #running-req: 0, #queue-req: 0", 0)  # fmt: skip
    log.wait(1)
    log.say('INFO:     127.0.0.1:40652 - "POST /generate HTTP/1.1" 200 OK')
    log.say("The server is fired up and ready to roll!")

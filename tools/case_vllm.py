"""What vLLM prints on its way up, as far as each worker comes.

In:  a Log with its Spec, and how far each worker comes. Out: lines in the Log.
Not: SGLang (case_startup.py).

Source: log calls of vLLM 0.11 that public reports show.
"""

from __future__ import annotations

from case_startup import MODELS, bar
from case_text import MAIN, Log

from triage.core.phases import order


def start(log: Log, reached: dict[int, str]) -> None:  # noqa: PLR0912  a list of steps
    """Everything up to the phase that each worker reaches."""
    spec = log.spec
    last = max(order(phase) for phase in reached.values())
    arch, shards, weights, _ = MODELS[spec.model]
    log.raw(
        f"INFO {log.now:%m-%d %H:%M:%S} [__init__.py:216] Automatically detected platform cuda."
    )
    log.wait(6)
    if last < order("arg-validation"):
        return
    flags = {"model": f"/models/{spec.model}", "tensor_parallel_size": spec.tp,
             **{name.replace("-", "_"): value for name, value in spec.flags.items()}}  # fmt: skip
    log.say(f"[api_server.py:1839] vLLM API server version {spec.version}")
    log.say(f"[utils.py:233] non-default args: {flags!r}")
    if last < order("config-load"):
        return
    log.wait(8)
    log.say(f"[model.py:547] Resolved architecture: {arch}")
    log.say("[model.py:1510] Using max model len 40960")
    log.say("[scheduler.py:205] Chunked prefill is enabled with max_num_batched_tokens=8192.")
    if last < order("process-spawn"):
        return
    log.wait(9)
    core = f"(EngineCore_DP0 pid={log.pid_of(MAIN) + 60}) INFO {log.now:%m-%d %H:%M:%S} "
    log.raw(f"{core}[core.py:644] Waiting for init message from front-end.")
    log.raw(f"{core}[core.py:77] Initializing a V1 LLM engine (v{spec.version}) with config:"
            f" model='/models/{spec.model}', speculative_config=None, tokenizer='/models/{spec.model}',"
            f" dtype=torch.bfloat16, max_seq_len=40960, tensor_parallel_size={spec.tp},"
            " pipeline_parallel_size=1, data_parallel_size=1, disable_custom_all_reduce=False,"
            " quantization=None, enforce_eager=False, kv_cache_dtype=auto, device_config=cuda,"
            " compilation_config={\"level\":3,\"splitting_ops\":[\"vllm.unified_attention\"],"
            "\"cudagraph_mode\":[2,1],\"max_capture_size\":512}")  # fmt: skip
    ranks = list(range(spec.world))
    for phase, lines in (
        ("dist-init", ("[parallel_state.py:1208] rank {rank} in world size {world} is assigned as DP rank 0,"
                       " PP rank 0, TP rank {rank}, EP rank {rank}",
                       "[pynccl.py:103] vLLM is using nccl==2.27.3")),
        ("model-construct", ("[gpu_model_runner.py:2602] Starting to load model"
                             f" /models/{spec.model}...",
                             "[cuda.py:366] Using Flash Attention backend on V1 engine.")),
    ):  # fmt: skip
        log.wait(4)
        for i in ranks:
            if order(reached[i]) >= order(phase):
                for text in lines:
                    log.say(log.fill(text, i).replace("{world}", str(spec.tp)), i)
    if last < order("weight-load"):
        return
    log.raw(
        log.stamp(0) + bar("Loading safetensors checkpoint shards:", shards, max(1, shards // 3)), 0
    )
    if last < order("memory-profiling"):
        return
    log.wait(40)
    for i in ranks:
        log.say("[default_loader.py:267] Loading weights took 38.20 seconds", i)
        log.say(f"[gpu_model_runner.py:2653] Model loading took {weights / spec.tp:.4f} GiB and"
                " 39.120933 seconds", i)  # fmt: skip
        log.say(
            "[backends.py:548] Using cache directory:"
            " /root/.cache/vllm/torch_compile_cache/4f3a/rank_0_0/backbone for vLLM's torch.compile",
            i,
        )
    if last < order("kv-pool-init"):
        return
    log.wait(12)
    for i in ranks:
        log.say("[gpu_worker.py:298] Available KV cache memory: 41.20 GiB", i)
    log.raw(f"{core}[kv_cache_utils.py:1087] GPU KV cache size: 411,200 tokens")
    if last < order("graph-capture"):
        return
    log.raw(
        log.stamp(0)
        + "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):   3%|▎         | 2/67 [00:00<00:14,  4.50it/s]",
        0,
    )
    if last < order("scheduler-init"):
        return
    for i in ranks:
        log.say("[gpu_model_runner.py:3480] Graph capturing finished in 12 secs, took 0.61 GiB", i)
    log.raw(
        f"{core}[core.py:210] init engine (profile, create kv cache, warmup model) took 41.88 seconds"
    )
    if last < order("warmup-request"):
        return
    log.raw(f"{log.stamp()}INFO:     Started server process [{log.pid_of(MAIN)}]")
    log.raw(f"{log.stamp()}INFO:     Waiting for application startup.")
    if last >= order("serving"):
        log.raw(f"{log.stamp()}INFO:     Application startup complete.")

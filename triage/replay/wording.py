"""What SGLang 0.5.23 says in each phase, as templates.

In:  sizes of a landscape and the place of a rank. Out: lines and traceback entries.
Not: when they are printed, and by whom (script.py).

Source: logs of SGLang 0.5.23 and its log calls. No figure of speed is printed:
a simulated one could be taken for a measured one.
"""

from __future__ import annotations

from dataclasses import dataclass

from triage.replay.landscape import FrameAt, ModelFacts

SCHEDULER_FAILED = "Scheduler hit an exception: "
CHILD_FAILED = "Received sigquit from a child process. It usually means the child failed."
CHILD_FAILED_LATE = "SIGQUIT received. signum=None, frame=None. It usually means one child failed."
READY = "The server is fired up and ready to roll!"
DURING = "During handling of the above exception, another exception occurred:"
ADVICE = (
    "Possible solutions:",
    "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)",
    "2. set --cuda-graph-max-bs-decode to a smaller value (e.g., 16)",
    "3. disable decode CUDA graph by --cuda-graph-backend-decode=disabled."
    " (Not recommended. Huge performance loss)",
    "Open an issue on GitHub https://github.com/sgl-project/sglang/issues/new/choose ",
)
BATCH_SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64)


@dataclass(frozen=True, slots=True)
class Said:
    """One line of a phase: how far into it (0 to 1), and whether rank 0 alone prints it."""

    share: float
    text: str
    first_rank_only: bool = False


def phase_lines(phase: str, facts: ModelFacts, seconds: float) -> tuple[Said, ...]:
    """The lines of a rank in this phase; empty where SGLang is silent."""
    loaded = facts.free_gb - facts.weights_gb
    pooled = loaded - facts.kv_gb
    match phase:
        case "dist-init":
            return (
                Said(0.0, "Init parallel begin."),
                Said(0.9, f"Init parallel ends. elapsed={seconds * 0.9:.2f} s"),
                Said(1.0, "Memory baseline taken. mem usage=0.00 GB"),
            )
        case "weight-load" | "draft-worker-init":
            return _load_lines(facts, seconds, loaded)
        case "kv-pool-init":
            return (
                Said(
                    0.7,
                    f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {facts.kv_tokens},"
                    f" KV size: {facts.kv_gb:.2f} GB",
                ),
                Said(1.0, f"Memory pool end. avail mem={pooled:.2f} GB"),
            )
        case "flashinfer-autotune":
            return (
                Said(0.0, "Running FlashInfer autotune with cache: /cache/flashinfer/tuned.json"),
                Said(1.0, "FlashInfer autotune completed."),
            )
        case "graph-capture":
            return _capture_lines("target decode", seconds, pooled, "backend=full")
        case "prefill-graph-capture":
            return _capture_lines("target prefill", seconds, pooled, "backend=breakable")
        case "draft-graph-capture":
            return _capture_lines("draft decode", seconds, pooled, "backend=full")
        case "scheduler-init":
            return (
                Said(
                    0.5,
                    f"max_total_num_tokens={facts.kv_tokens}, chunked_prefill_size=8192,"
                    " max_prefill_tokens=16384, max_running_requests=64,"
                    f" context_len={facts.context}, available_gpu_mem={pooled:.2f} GB",
                    first_rank_only=True,
                ),
                Said(
                    1.0,
                    "Tree cache initialized: source=default impl=UnifiedRadixCache"
                    " hybrid_swa=False hybrid_ssm=False hicache_attached=False",
                ),
            )
        case _:
            return ()


def _load_lines(facts: ModelFacts, seconds: float, loaded: float) -> tuple[Said, ...]:
    steps = sorted({0, *(facts.shards * part // 4 for part in (1, 2, 3, 4))})
    bars = tuple(
        Said(
            0.95 * done / facts.shards,
            f"Multi-thread loading shards: {100 * done // facts.shards:3d}% Completed"
            f" | {done}/{facts.shards}",
            first_rank_only=True,
        )
        for done in steps
    )
    return (
        Said(0.0, f"Load weight begin. avail mem={facts.free_gb:.2f} GB"),
        *bars,
        Said(
            1.0,
            f"Load weight end. elapsed={seconds:.2f} s, type={facts.type},"
            f" avail mem={loaded:.2f} GB, mem usage={facts.weights_gb:.2f} GB.",
        ),
    )


def _capture_lines(what: str, seconds: float, free_gb: float, how: str) -> tuple[Said, ...]:
    bars = tuple(
        Said(
            0.1 + 0.8 * index / len(BATCH_SIZES),
            f"Capturing batches (bs={size} avail_mem={free_gb:.2f} GB)",
            first_rank_only=True,
        )
        for index, size in enumerate(reversed(BATCH_SIZES))
    )
    return (
        Said(0.0, f"Capture {what} CUDA graph begin. {how}, avail mem={free_gb:.2f} GB"),
        *bars,
        Said(
            1.0,
            f"Capture {what} CUDA graph end. bs={list(BATCH_SIZES)}, elapsed={seconds:.2f} s,"
            f" mem usage=0.00 GB, avail mem={free_gb:.2f} GB.",
        ),
    )


def _at(file: str, line: int, function: str, text: str) -> FrameAt:
    return FrameAt(file=file, line=line, function=function, text=text)


# The way from the process to the phase, outermost first: what every exception
# of that phase has in common.
_START = (
    _at(
        "managers/scheduler.py",
        6362,
        "run_scheduler_process",
        "scheduler = Scheduler(server_args, port_args)",
    ),
    _at("managers/scheduler.py", 568, "__init__", "self.init_model_worker()"),
)
_WORKER = (
    *_START,
    _at("managers/scheduler.py", 1130, "init_model_worker", "self.init_tp_model_worker()"),
    _at("managers/tp_worker.py", 487, "_init_model_runner", "self._model_runner = ModelRunner("),
    _at("model_executor/model_runner.py", 499, "__init__", "self.initialize()"),
)
_GRAPHS = (
    *_START,
    _at("managers/scheduler.py", 1146, "init_model_worker", "self.init_all_cuda_graphs()"),
    _at(
        "managers/scheduler.py",
        1124,
        "init_all_cuda_graphs",
        "self.tp_worker.init_cuda_graphs()",
    ),
    _at("model_executor/model_runner.py", 1192, "init_cuda_graphs", "capture_cuda_graphs("),
)
_DECODE = (
    *_GRAPHS,
    _at(
        "model_executor/model_runner_components/cuda_graph_setup.py",
        768,
        "capture_decode_graph",
        "runner = GraphRunnerCls(model_runner)",
    ),
)
CAPTURE = _at(
    "model_executor/runner/decode_cuda_graph_runner.py", 600, "__init__", "self.capture()"
)
CAPTURE_FAILED = _at(
    "model_executor/runner/decode_cuda_graph_runner.py", 602, "__init__", "raise Exception("
)
STEMS: dict[str, tuple[FrameAt, ...]] = {
    "arg-validation": (
        _at("server_args.py", 277, "resolve_once", "run_resolution_pipeline(self)"),
    ),
    "tokenizer-processor": (
        _at("managers/tokenizer_manager.py", 420, "__init__", "self.init_tokenizer()"),
    ),
    "process-spawn": (
        _at("entrypoints/engine.py", 1350, "_launch_subprocesses", "scheduler_procs.start()"),
    ),
    "dist-init": (
        *_WORKER,
        _at("model_executor/model_runner.py", 640, "init_torch_distributed", "initialize("),
    ),
    "model-construct": (
        *_WORKER,
        _at("model_executor/model_runner.py", 1312, "load_model", "loaded = load_model_with("),
        _at("model_loader/loader.py", 309, "_initialize_model", "model = model_class(**kwargs)"),
    ),
    "weight-load": (
        *_WORKER,
        _at("model_executor/model_runner.py", 1312, "load_model", "loaded = load_model_with("),
        _at("model_loader/loader.py", 1030, "load_weights_and_postprocess", "model.load_weights("),
    ),
    "kv-pool-init": (
        *_START,
        _at("managers/scheduler.py", 1137, "init_model_worker", "self.init_memory_pools()"),
        _at("model_executor/model_runner.py", 982, "alloc_memory_pool", "configure("),
    ),
    "flashinfer-autotune": (
        *_GRAPHS,
        _at("model_executor/runner/eager_runner.py", 133, "__init__", "self.warmup()"),
        _at("model_executor/runner/base_runner.py", 284, "_warmup", "self._flashinfer_autotune("),
        _at(
            "model_executor/runner/flashinfer_autotune.py",
            379,
            "run_flashinfer_autotune_forward",
            "forward_fn()",
        ),
        _at("model_executor/runner/base_runner.py", 408, "forward_fn", "self._dummy_run("),
    ),
    "graph-capture": (*_DECODE, CAPTURE),
    "scheduler-init": (
        _START[0],
        _at("managers/scheduler.py", 671, "__init__", "self.init_schedule_policy()"),
        _at("managers/scheduler.py", 1438, "init_schedule_policy", "self.policy = SchedulePolicy("),
    ),
    "warmup-request": (
        _at("managers/scheduler.py", 6380, "run_scheduler_process", "scheduler.run_event_loop()"),
        _at("managers/scheduler.py", 1620, "event_loop_overlap", "result = self.run_batch(batch)"),
        _at(
            "managers/tp_worker.py", 610, "forward_batch_generation", "out = model_runner.forward("
        ),
    ),
}
CAPTURE_STEM = _DECODE


def stem(phase: str) -> tuple[FrameAt, ...]:
    """The outer traceback entries of a failure in this phase."""
    return STEMS.get(phase, _START)

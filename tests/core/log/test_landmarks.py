"""A startup's phases are read off its lines, rank by rank."""

from __future__ import annotations

import pytest

from triage.core.diagnosis import Frame
from triage.core.log.frames import proven_phase
from triage.core.log.landmarks import Timeline, phase_of
from triage.core.log.lines import clean
from triage.core.phases import PHASES


def timeline(*lines: str) -> Timeline:
    result = Timeline()
    for number, text in enumerate(lines, start=1):
        for line in clean(text.encode(), 0, number):
            if phase := phase_of(line.text):
                result.mark(line, phase)
    return result


def frames(*places: str) -> list[Frame]:
    pairs = [place.rsplit(":", 1) for place in places]
    return [Frame(file=file, line=1, function=function) for file, function in pairs]


@pytest.mark.parametrize(
    ("text", "phase"),
    [
        ("server_args={'model_path': 'x'}", "config-load"),
        ("server_args=ServerArgs(model_path='x')", "config-load"),
        ("Using default HuggingFace chat template with detected content format: string",
         "process-spawn"),
        ("Init nccl begin.", "dist-init"),
        ("Init torch distributed begin.", "dist-init"),
        ("Init parallel begin.", "dist-init"),
        ("Init torch distributed ends. mem usage=0.34 GB", "model-construct"),
        ("Load weight begin. avail mem=17.86 GB", "model-construct"),
        ("Multi-thread loading shards:   0% Completed | 0/1", "weight-load"),
        ("Loading safetensors checkpoint shards:   0% Completed", "weight-load"),
        ("Load weight end. elapsed=0.02 s", "kv-pool-init"),
        ("KV Cache is allocated. dtype: torch.bfloat16", "kv-pool-init"),
        ("Memory pool end. avail mem=17.85 GB", "attn-backend-init"),
        ("Running FlashInfer autotune...", "flashinfer-autotune"),
        ("Capture npu graph begin. This can take up to several minutes", "graph-capture"),
        ("Capture cuda graph begin. This can take up to several minutes.", "graph-capture"),
        ("Capture target decode CUDA graph begin. backend=full", "graph-capture"),
        ("Capture target prefill CUDA graph begin. backend=breakable", "prefill-graph-capture"),
        ("Capture cuda graph num tokens [4, 8]", "prefill-graph-capture"),
        ("Capture draft decode CUDA graph begin. backend=full", "draft-graph-capture"),
        ("Capture target verify CUDA graph begin.", "draft-graph-capture"),
        ("Capture target decode CUDA graph end. bs=[1], elapsed=3 s", "scheduler-init"),
        ("max_total_num_tokens=4096, chunked_prefill_size=2048", "scheduler-init"),
        ("INFO:     Started server process [6977]", "warmup-request"),
        ("The server is fired up and ready to roll!", "serving"),
        ("Capture cuda graph failed: CUDA out of memory", ""),
        ("Registering 0 cuda graph addresses", ""),
        ("Ignore import error when loading sglang.srt.models.x: y", ""),
    ],
)  # fmt: skip
def test_a_line_opens_a_phase(text: str, phase: str) -> None:
    assert phase_of(text) == phase
    assert phase == "" or phase in PHASES


def test_ranks_are_followed_apart() -> None:
    seen = timeline(
        "[2026-07-01 12:00:00 TP0] Init parallel begin.",
        "[2026-07-01 12:00:00 TP1] Init parallel begin.",
        "[2026-07-01 12:00:01 TP0] Init parallel ends. elapsed=1 s",
    )
    assert seen.phases == {"TP0": "model-construct", "TP1": "dist-init"}
    assert [(step.rank, step.phase, step.line.number) for step in seen.steps] == [
        ("TP0", "dist-init", 1),
        ("TP1", "dist-init", 2),
        ("TP0", "model-construct", 3),
    ]
    assert seen.furthest() == "model-construct"


def test_the_progress_bar_of_rank_0_counts_for_all() -> None:
    seen = timeline(
        "[2026-07-01 12:00:00 TP0] Load weight begin.",
        "[2026-07-01 12:00:00 TP1] Load weight begin.",
        "\rMulti-thread loading shards:   0% Completed | 0/1 [00:00<?, ?it/s]",
    )
    assert seen.phases == {"TP0": "weight-load", "TP1": "weight-load"}


def test_a_second_load_is_the_draft_models() -> None:
    seen = timeline(
        "[2026-07-01 12:00:00] Load weight begin.",
        "[2026-07-01 12:00:00] Load weight end.",
        "[2026-07-01 12:00:00] Load weight begin.",
    )
    assert seen.phases == {"main": "draft-worker-init"}


def test_ranks_that_load_at_once_without_tags_load_no_draft() -> None:
    seen = timeline(
        "[2026-07-01 12:00:00] Load weight begin.",
        "[2026-07-01 12:00:00] Load weight begin.",
        "Loading safetensors checkpoint shards:   0% Completed | 0/2 [00:00<?, ?it/s]",
        "[2026-07-01 12:00:01] Load weight begin.",
        "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:00<?, ?it/s]",
    )
    assert seen.phases == {"main": "weight-load"}


def test_all_ranks_warm_up_once_the_http_server_is_up() -> None:
    seen = timeline(
        "[2026-07-01 12:00:00 TP1] Tree cache initialized: x",
        "[2026-07-01 12:00:00] INFO:     Started server process [1]",
    )
    assert seen.phase("TP1") == "warmup-request"


@pytest.mark.parametrize(
    ("places", "phase"),
    [
        (("sglang/srt/server_args.py:__post_init__",), "arg-validation"),
        (("sglang/srt/server_args.py:resolve_once", "transformers/configuration_utils.py:x"),
         "config-load"),
        (("sglang/srt/managers/tokenizer_manager.py:__init__",), "tokenizer-processor"),
        (("model_runner.py:init_torch_distributed", "pynccl.py:__init__"), "dist-init"),
        (("model_runner.py:load_model", "model_loader/loader.py:f", "sglang/srt/models/x.py:__init__"),
         "model-construct"),
        (("sglang/srt/models/x.py:load_weights", "layers/linear.py:weight_loader"), "weight-load"),
        (("cuda_graph_runner.py:capture_one_batch_size", "x.py:run_once"), "graph-capture"),
        (("runner/prefill_cuda_graph_runner.py:capture",), "prefill-graph-capture"),
        (("eagle_draft_cuda_graph_runner.py:capture",), "draft-graph-capture"),
        (("eagle_worker.py:__init__", "sglang/srt/models/x.py:__init__"), "draft-worker-init"),
        (("base_runner.py:_dummy_run", "attention_forward_methods/forward_mla.py:f"),
         "flashinfer-autotune"),
        (("attention_registry.py:create",), "attn-backend-init"),
        (("scheduler.py:event_loop_overlap", "cuda_graph_runner.py:replay"), "warmup-request"),
        (("scheduler.py:__init__", "managers/schedule_policy.py:_validate_and_adjust_policy"),
         "scheduler-init"),
        (("managers/scheduler.py:init_overlap", "x.py:f"), "scheduler-init"),
        (("managers/scheduler.py:event_loop_normal", "managers/schedule_policy.py:calc_priority"),
         "warmup-request"),
        (("scheduler.py:__init__", "x.py:f"), ""),
        (("srt/constrained/fsm_cache.py:__init__", "outlines/models/transformers.py:__init__"), ""),
        (("scheduler.py:__init__", "srt/disaggregation/kv_events.py:_bind"), "scheduler-init"),
        (("srt/mem_cache/storage/store.py:register_buffer",), "scheduler-init"),
        (("device_communicators/mooncake_transfer_engine.py:initialize",), "pd-init"),
        (("srt/disaggregation/decode.py:event_loop_overlap_disagg_decode", "speculative/spec_utils.py:prepare"),
         "warmup-request"),
        (("srt/disaggregation/decode.py:event_loop_overlap_disagg_decode", "srt/disaggregation/decode.py:pop"),
         "pd-init"),
        (("scheduler.py:__init__", "torch/distributed/rendezvous.py:_create_c10d_store"),
         "dist-init"),
        (("decode_cuda_graph_runner.py:capture", "mem_cache/memory_pool.py:set_kv_buffer"),
         "graph-capture"),
        (("model_runner.py:init_device_graphs", "mem_cache/memory_pool.py:set_kv_buffer"),
         "graph-capture"),
        (("<frozen runpy>:_run_module_as_main", "<frozen runpy>:_run_code",
          "-packages/sglang/bench_offline_throughput.py:<module>", "x.py:__post_init__"), ""),
        ((), ""),
    ],
)  # fmt: skip
def test_the_innermost_telling_frame_proves_the_phase(places: tuple[str, ...], phase: str) -> None:
    assert proven_phase(frames(*places)) == phase


def test_without_tags_a_second_ranks_load_is_no_draft() -> None:
    begin, end = "Load weight begin. avail mem=1", "Load weight end. type=X"
    assert timeline(begin, begin).phases["main"] == "model-construct"
    assert timeline(begin, begin, end).phases["main"] == "kv-pool-init"
    assert timeline(begin, end, begin).phases["main"] == "draft-worker-init"

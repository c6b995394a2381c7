"""Which phase the frames of a traceback prove.

In:  frames, outermost first. Out: a phase, or "".
Not: phases from landmarks (landmarks.py).

The innermost frame that proves something wins, because outer frames are the
same for most of a startup. Source: call paths of SGLang 0.4 to 0.5.23 and vLLM.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from triage.core.diagnosis import Frame
from triage.core.regex import regex


class _Table:
    """Patterns on "file:function"; the first that matches counts.

    A row is a pattern, the phase that it proves, and texts without which it cannot match.
    """

    def __init__(self, rows: Sequence[tuple[str, ...]]) -> None:
        self._rows = [(regex(row[0], needs=row[2:]), row[1]) for row in rows]
        # The same frames come back in each rank's traceback.
        self.phase = lru_cache(maxsize=1024)(self._phase)

    def _phase(self, where: str) -> str:
        return next((phase for pattern, phase in self._rows if pattern.search(where)), "")


# Stages that hold whatever is called below them: a buffer that is made on first use in the
# forward that is captured, a pool that runs out in the first batch.
_STAGES = _Table(
    (
        (
            r"(draft|mtp)\w*_cuda_graph_runner\.py:(?!replay|can_run|load_batch|pad_to|prepare_replay)",
            "draft-graph-capture",
            "draft",
            "mtp",
        ),
        (
            r"prefill_cuda_graph_runner\.py:(?!replay|can_run|load_batch|pad_to|prepare_replay)",
            "prefill-graph-capture",
            "prefill_cuda_graph_runner.py:",
        ),
        (
            r":_?(init_)?capture_prefill_graph|:init_prefill_cuda_graph",
            "prefill-graph-capture",
            "_prefill_",
        ),
        (
            r"piecewise_cuda_graph_runner\.py:(?!replay|can_run|load_batch|pad_to|prepare_replay)",
            "prefill-graph-capture",
            "piecewise_cuda_graph_runner.py:",
        ),
        (
            r"graph_runner\.py:(?!replay|can_run|load_batch|pad_to|prepare_replay)",
            "graph-capture",
            "graph_runner.py:",
        ),
        (
            r":(capture_decode_graph|init_device_graphs|capture_model)$",
            "graph-capture",
            ":capture_decode_graph",
            ":capture_model",
            ":init_device_graphs",
        ),
        (
            r"gpu_worker\.py:determine_available_memory|:profile_run$",
            "memory-profiling",
            ":profile_run",
            "gpu_worker.py:determine_available_memory",
        ),
        (
            r"scheduler\w*\.py:(event_loop_\w+|run_event_loop|run_batch)",
            "warmup-request",
            ".py:event_loop_",
            ".py:run_",
        ),
    )
)
# A pattern on "file:function" -> phase.
_PROOFS = _Table(
    (
        (
            r"arg_groups/\w+\.py:|server_args\.py:|engine\.py:_set_envs_and_config",
            "arg-validation",
            "arg_groups/",
            "engine.py:_set_envs_and_config",
            "server_args.py:",
        ),
        (
            r"runtime_context\.py:(publish|_configure_context)",
            "arg-validation",
            "runtime_context.py:",
        ),
        (
            r"flashinfer_autotune\.py:|:_?flashinfer_autotune$",
            "flashinfer-autotune",
            "flashinfer_autotune",
        ),
        (r":kernel_warmup$", "flashinfer-autotune", ":kernel_warmup"),
        (
            r"http_server\.py:_?(execute_server_warmup|wait_and_warmup)",
            "warmup-request",
            "http_server.py:",
        ),
        (
            r"(comm_fusion|mnnvl_ar|trtllm_ar)\w*\.py:",
            "comm-buffer-init",
            "comm_fusion",
            "mnnvl_ar",
            "trtllm_ar",
        ),
        (r":_pre_initialize_flashinfer", "comm-buffer-init", ":_pre_initialize_flashinfer"),
        (
            r":(load_weights\w*|\w*weight_loader\w*|_load_w\w+|\w*_weights_iterator|_prepare_weights"
            r"|_get_all_weights)$",
            "weight-load",
            "_get_all_weights",
            "_load_w",
            "_prepare_weights",
            "_weights_iterator",
            "load_weights",
            "weight_loader",
        ),
        (r"weight_utils\.py:(?!get_quant_config)", "weight-load", "weight_utils.py:"),
        (r"/lora/\w+\.py:", "lora-init", "/lora/"),
        (
            r"(?<!outlines)/models/\w+\.py:__init__|loader\.py:_?initialize_model",
            "model-construct",
            "/models/",
            "loader.py:_initialize_model",
            "loader.py:initialize_model",
        ),
        (
            r"(model_loader/\w+|update_config|load_model_utils)\.py:",
            "model-construct",
            "load_model_utils",
            "model_loader/",
            "update_config",
        ),
        (
            r"attention_registry\.py:|attention_backend_setup\.py:",
            "attn-backend-init",
            "attention_",
        ),
        (
            r"attention/\w+_backend\.py:__init__|:init_attention_backend",
            "attn-backend-init",
            "_backend",
        ),
        (r":(alloc|init|_init|init_target)_memory_pools?$", "kv-pool-init", "_memory_pool"),
        (
            r"(model_runner|tp_worker)\.py:init_(device|cuda)_graphs$",
            "graph-capture",
            ":init_cuda_graphs",
            ":init_device_graphs",
        ),
        (
            r"(memory_pool\w*|kv_cache\w*|kv_cache_utils)\.py:(?!_?[sg]et_)",
            "kv-pool-init",
            "kv_cache",
            "memory_pool",
        ),
        (
            r"(parallel_state|pynccl\w*|custom_all_reduce\w*)\.py:(init\w*|__init__|ncclCommInit\w+)",
            "dist-init",
            "custom_all_reduce",
            "parallel_state",
            "pynccl",
        ),
        (
            r":(init_torch_distributed|init_distributed_environment|initialize_model_parallel)$",
            "dist-init",
            ":init_distributed_environment",
            ":init_torch_distributed",
            ":initialize_model_parallel",
        ),
        (r":(set_device|init_device)$", "device-init", "t_device"),
        (
            r"tokenizer_manager\.py:(__init__|init_tokenizer\w*)",
            "tokenizer-processor",
            "tokenizer_manager.py:",
        ),
        (
            r":(get_tokenizer|get_processor|load_chat_template\w*)$",
            "tokenizer-processor",
            "get_processor",
            "get_tokenizer",
            "load_chat_template",
        ),
        (r"template_manager\.py:", "tokenizer-processor", "template_manager.py:"),
        (r"(configuration_\w+|hf_transformers/config|model_config)\.py:", "config-load", "config"),
        (r":(get_config|get_hf_config)$", "config-load", "_config"),
        (
            r"arg_utils\.py:(create_\w+|from_(cli|engine)_args)$",
            "config-load",
            "arg_utils.py:create_",
            "arg_utils.py:from_",
        ),
        (
            r"config_argument_merger\.py:|config_parser\.py:|:merge_config_with_args$",
            "arg-parse",
            "config_",
        ),
        (
            r":(from_cli_args|check_server_args)$",
            "arg-validation",
            ":check_server_args",
            ":from_cli_args",
        ),
        (
            r"argparse\.py:|:(parse_args|prepare_server_args)$",
            "arg-parse",
            ":parse_args",
            ":prepare_server_args",
            "argparse.py:",
        ),
        (r"mooncake_transfer_engine\.py:", "pd-init", "mooncake_transfer_engine.py:"),
        (r"/disaggregation/\w+\.py:event_loop_", "warmup-request", ".py:event_loop_"),
        (r"/disaggregation/(?!kv_events)\w+", "pd-init", "/disaggregation/"),
        (r"/disaggregation/kv_events\.py:", "scheduler-init", "/disaggregation/kv_events"),
        (r"/mem_cache/(storage/|\w*radix_cache|hicache\w*)", "scheduler-init", "/mem_cache/"),
        (
            r"scheduler\w*\.py:init_(schedule_policy|cache|grammar|prefill_delayer|pdmux|running_status"
            r"|chunked_prefill|diffusion_llm|metrics_reporter|kv_events|watch_dog|profiler|overlap"
            r"|deterministic|weight_updater|request_|lora_|load_)\w*",
            "scheduler-init",
            ".py:init_",
        ),
        (r"schedule_policy\.py:_?validate", "scheduler-init", "schedule_policy.py:"),
        (
            r":maybe_init_draft_worker$|spec_registry\.py:create_worker|eagle_worker\w*\.py:__init__$",
            "draft-worker-init",
            ":maybe_init_draft_worker",
            "eagle_worker",
            "spec_registry.py:create_worker",
        ),
    )
)
_DRAFT = regex(
    r"(eagle|draft|dflash|dspark|mtp|uno)\w*worker\w*\.py:|:maybe_init_draft_worker$",
    needs=("worker",),
)
_DISAGGREGATED = regex(r"/disaggregation/(?!kv_events)", needs=("/disaggregation/",))
_OF_DRAFT = {
    "config-load": "draft-config-load",
    "model-construct": "draft-worker-init",
    "weight-load": "draft-worker-init",
    "graph-capture": "draft-graph-capture",
    "prefill-graph-capture": "draft-graph-capture",
}
_TOKENIZER = regex(r":get_tokenizer$", needs=(":get_tokenizer",))
_IMPORT = regex(r"<frozen importlib\._bootstrap", needs=("frozen importlib._bootstrap",))
_IMPORTER = regex(
    r"<frozen |runpy\.py:|importlib/|:(?:_get_module|__getattr__|import_module)$",
    needs=(":__getattr__", ":_get_module", ":import_module", "frozen ", "importlib/", "runpy.py:"),
)
_ENTRY = regex(
    r"(?:launch_server|__main__|cli|main)\.py$|/bin/\w+$|^<frozen runpy>|runpy\.py$",
    needs=(
        "/bin/",
        "__main__.py",
        "cli.py",
        "frozen runpy",
        "launch_server.py",
        "main.py",
        "runpy.py",
    ),
)
_CAPTURE = regex(
    r"graph_runner\.py:(?!replay|can_run|load_batch|pad_to|prepare_replay)|:(capture_one_\w+|capture_decode_graph)$",
    needs=("capture_", "graph_runner.py:"),
)
# Weaker: such frames occur in several phases, and tell something only if no other does.
_WEAK = _Table(
    (
        (
            r"model_runner\.py:load_model$|worker\w*\.py:load_model$",
            "weight-load",
            ".py:load_model",
        ),
        (
            r"(transformers/utils/hub|transformers/\w+/auto/\w+_auto)\.py:",
            "config-load",
            "transformers/",
        ),
        (
            r"(file_download|hf_file_system|huggingface_hub/\S+|modelscope/\S+)\.py:",
            "config-load",
            "file_download",
            "hf_file_system",
            "huggingface_hub/",
            "modelscope/",
        ),
        (
            r"torch/(cuda|xpu|npu)/__init__\.py:(_lazy_init|current_device)$",
            "device-init",
            "/__init__.py:_lazy_init",
            "/__init__.py:current_device",
        ),
        (r":_dummy_run$", "flashinfer-autotune", ":_dummy_run"),
        (
            r"pynccl\w*\.py:|torch/distributed/(\w+\.py:(init_process_group|new_group)|rendezvous\.py:)",
            "dist-init",
            "pynccl",
            "torch/distributed/",
        ),
    )
)


def place(frame: Frame) -> str:
    """The frame as "file:function", the form that patterns on frames match."""
    return f"{frame.file}:{frame.function}"


def proven_phase(frames: Sequence[Frame]) -> str:
    """The phase that the innermost telling frame proves; "" if no frame tells."""
    if _is_import_all_along(frames):
        return "import"
    places = [place(frame) for frame in frames]
    for table in (_STAGES, _PROOFS):
        if phase := _innermost(places, table):
            return phase
    if _imports(frames):
        return "import"
    return _innermost(places, _WEAK)


def _innermost(places: Sequence[str], table: _Table) -> str:
    for number in range(len(places) - 1, -1, -1):
        phase = table.phase(places[number])
        if not phase:
            continue
        outer = places[:number]
        if phase == "scheduler-init" and any(map(_DISAGGREGATED.search, outer)):
            return "pd-init"
        if any(map(_DRAFT.search, outer)):
            return _OF_DRAFT.get(phase, phase)
        if phase == "config-load" and any(map(_TOKENIZER.search, outer)):
            return "tokenizer-processor"
        return phase
    return ""


def _is_import_all_along(frames: Sequence[Frame]) -> bool:
    """Whether nothing but imports led to the module whose own level failed."""
    levels = [n for n, frame in enumerate(frames) if frame.function == "<module>"]
    if not levels or _is_entry(frames, levels[-1]):
        return False
    return all(
        frame.function == "<module>" or _IMPORTER.search(place(frame))
        for frame in frames[: levels[-1]]
    )


def _imports(frames: Sequence[Frame]) -> bool:
    """Whether a module was being imported: its own level is on the stack."""
    if any(_IMPORT.search(frame.file) for frame in frames):
        return True
    levels = [n for n, frame in enumerate(frames) if frame.function == "<module>"]
    if not levels:
        return False
    last = levels[-1]
    return last == len(frames) - 1 or not _is_entry(frames, last)


def _is_entry(frames: Sequence[Frame], number: int) -> bool:
    """Whether the frame is the program's own, from which everything is called."""
    file = frames[number].file
    outermost = number == 0 and "-packages/" not in file
    outermost |= number > 0 and frames[number - 1].function == "_run_code"  # python -m MODULE
    return outermost or _ENTRY.search(file) is not None

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
    """Patterns on "file:function", each with the phase that it proves; the first counts."""

    def __init__(self, rows: Sequence[tuple[str, str]]) -> None:
        self._rows = [(regex(pattern), phase) for pattern, phase in rows]
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
        ),
        (
            r"prefill_cuda_graph_runner\.py:(?!replay|can_run|load_batch|pad_to|prepare_replay)",
            "prefill-graph-capture",
        ),
        (r":_?(init_)?capture_prefill_graph|:init_prefill_cuda_graph", "prefill-graph-capture"),
        (
            r"piecewise_cuda_graph_runner\.py:(?!replay|can_run|load_batch|pad_to|prepare_replay)",
            "prefill-graph-capture",
        ),
        (r"graph_runner\.py:(?!replay|can_run|load_batch|pad_to|prepare_replay)", "graph-capture"),
        (r":(capture_decode_graph|init_device_graphs|capture_model)$", "graph-capture"),
        (r"gpu_worker\.py:determine_available_memory|:profile_run$", "memory-profiling"),
        (r"scheduler\w*\.py:(event_loop_\w+|run_event_loop|run_batch)", "warmup-request"),
    )
)
# A pattern on "file:function" -> phase.
_PROOFS = _Table(
    (
        (r"arg_groups/\w+\.py:|server_args\.py:|engine\.py:_set_envs_and_config", "arg-validation"),
        (r"runtime_context\.py:(publish|_configure_context)", "arg-validation"),
        (r"flashinfer_autotune\.py:|:_?flashinfer_autotune$", "flashinfer-autotune"),
        (r":kernel_warmup$", "flashinfer-autotune"),
        (r"http_server\.py:_?(execute_server_warmup|wait_and_warmup)", "warmup-request"),
        (r"(comm_fusion|mnnvl_ar|trtllm_ar)\w*\.py:", "comm-buffer-init"),
        (r":_pre_initialize_flashinfer", "comm-buffer-init"),
        (r":(load_weights\w*|\w*weight_loader\w*|_load_w\w+|\w*_weights_iterator|_prepare_weights"
         r"|_get_all_weights)$", "weight-load"),
        (r"weight_utils\.py:(?!get_quant_config)", "weight-load"),
        (r"/lora/\w+\.py:", "lora-init"),
        (r"/models/\w+\.py:__init__|loader\.py:_?initialize_model", "model-construct"),
        (r"(model_loader/\w+|update_config|load_model_utils)\.py:", "model-construct"),
        (r"attention_registry\.py:|attention_backend_setup\.py:", "attn-backend-init"),
        (r"attention/\w+_backend\.py:__init__|:init_attention_backend", "attn-backend-init"),
        (r":(alloc|init|_init|init_target)_memory_pools?$", "kv-pool-init"),
        (r"(memory_pool\w*|kv_cache\w*|kv_cache_utils)\.py:", "kv-pool-init"),
        (r"(parallel_state|pynccl\w*|custom_all_reduce\w*)\.py:(init\w*|__init__|ncclCommInit\w+)",
         "dist-init"),
        (r":(init_torch_distributed|init_distributed_environment|initialize_model_parallel)$",
         "dist-init"),
        (r":(set_device|init_device)$", "device-init"),
        (r"tokenizer_manager\.py:(__init__|init_tokenizer\w*)", "tokenizer-processor"),
        (r":(get_tokenizer|get_processor|load_chat_template\w*)$", "tokenizer-processor"),
        (r"template_manager\.py:", "tokenizer-processor"),
        (r"(configuration_\w+|hf_transformers/config|model_config)\.py:", "config-load"),
        (r":(get_config|get_hf_config)$", "config-load"),
        (r"config_argument_merger\.py:|config_parser\.py:|:merge_config_with_args$", "arg-parse"),
        (r":(from_cli_args|check_server_args)$", "arg-validation"),
        (r"argparse\.py:|:(parse_args|prepare_server_args)$", "arg-parse"),
        (r"/disaggregation/\w+", "pd-init"),
        (r"scheduler\w*\.py:init_(schedule_policy|cache|grammar|prefill_delayer|pdmux|running_status"
         r"|chunked_prefill|diffusion_llm|metrics_reporter|kv_events|watch_dog|profiler|overlap"
         r"|deterministic|weight_updater|request_|lora_|load_)\w*", "scheduler-init"),
        (r"schedule_policy\.py:_?validate", "scheduler-init"),
        (r":maybe_init_draft_worker$|spec_registry\.py:create_worker", "draft-worker-init"),
    )
)  # fmt: skip
_DRAFT = regex(r"(eagle|draft|dflash|dspark|mtp|uno)\w*worker\w*\.py:|:maybe_init_draft_worker$")
_OF_DRAFT = {
    "config-load": "draft-config-load",
    "model-construct": "draft-worker-init",
    "weight-load": "draft-worker-init",
    "graph-capture": "draft-graph-capture",
    "prefill-graph-capture": "draft-graph-capture",
}
_TOKENIZER = regex(r":get_tokenizer$")
_IMPORT = regex(r"<frozen importlib\._bootstrap")
_IMPORTER = regex(r"<frozen |runpy\.py:|importlib/|:(?:_get_module|__getattr__|import_module)$")
_ENTRY = regex(r"(?:launch_server|__main__|cli|main)\.py$|/bin/\w+$|^<frozen runpy>|runpy\.py$")
_CAPTURE = regex(
    r"graph_runner\.py:(?!replay|can_run|load_batch|pad_to|prepare_replay)|:(capture_one_\w+|capture_decode_graph)$"
)
# Weaker: such frames occur in several phases, and tell something only if no other does.
_WEAK = _Table(
    (
        (r"model_runner\.py:load_model$|worker\w*\.py:load_model$", "weight-load"),
        (r"(transformers/utils/hub|transformers/\w+/auto/\w+_auto)\.py:", "config-load"),
        (r"(file_download|hf_file_system|huggingface_hub/\S+|modelscope/\S+)\.py:", "config-load"),
        (r":_dummy_run$", "flashinfer-autotune"),
        (r"pynccl\w*\.py:|torch/distributed/\w+\.py:(init_process_group|new_group)", "dist-init"),
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
        if phase == "scheduler-init" and any("/disaggregation/" in p for p in outer):
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
    return outermost or _ENTRY.search(file) is not None

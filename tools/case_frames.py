"""The outer frames that a traceback has in each phase, by style of engine.

In:  a style and a phase. Out: frames as `file:line:function:code`, outermost first.
Not: the frames of a failure itself; those are in its description.

Source: tracebacks of SGLang 0.5.23 on the CPU; for older releases and for graphs on a
GPU, the frames that public reports name. What stands between them is left out.
"""

from __future__ import annotations

_SCHED = "srt/managers/scheduler.py"
_RUNNER = "srt/model_executor/model_runner.py"
_SETUP = "srt/model_executor/model_runner_components/cuda_graph_setup.py"
_DECODE = "srt/model_executor/runner/decode_cuda_graph_runner.py"
_PREFILL = "srt/model_executor/runner/prefill_cuda_graph_runner.py"
_OLD_GRAPH = "srt/model_executor/cuda_graph_runner.py"

_NEW_INIT = (
    f"{_SCHED}:6362:run_scheduler_process:scheduler = Scheduler(server_args, port_args)",
    f"{_SCHED}:568:__init__:self.init_model_worker()",
)
_NEW_WORKER = (
    *_NEW_INIT,
    f"{_SCHED}:1130:init_model_worker:self.init_tp_model_worker()",
    f"{_SCHED}:1033:init_tp_model_worker:self.tp_worker = TpModelWorker(**worker_kwargs)",
    "srt/managers/tp_worker.py:319:__init__:self._init_model_runner()",
    "srt/managers/tp_worker.py:487:_init_model_runner:self._model_runner = ModelRunner(",
    f"{_RUNNER}:499:__init__:self.initialize()",
)
_NEW_LOAD = (
    *_NEW_WORKER,
    f"{_RUNNER}:715:initialize:self.load_model()",
    f"{_RUNNER}:1312:load_model:loaded = load_model_with_memory_saver(",
    "srt/model_executor/model_runner_components/load_model_utils.py:346:"
    "load_model_with_memory_saver:model = loader.load_model(",
)
_NEW_GRAPHS = (
    *_NEW_INIT,
    f"{_SCHED}:1146:init_model_worker:self.init_all_cuda_graphs()",
    f"{_SCHED}:1124:init_all_cuda_graphs:self.tp_worker.init_cuda_graphs()",
    "srt/managers/tp_worker.py:435:init_cuda_graphs:self.model_runner.init_cuda_graphs(",
    f"{_RUNNER}:1192:init_cuda_graphs:capture = capture_cuda_graphs(",
)
_NEW_LOOP = (
    f"{_SCHED}:6368:run_scheduler_process:scheduler.run_event_loop()",
    f"{_SCHED}:2010:run_event_loop:dispatch_event_loop(self)",
    f"{_SCHED}:6233:_dispatch_event_loop_once:scheduler.event_loop_overlap()",
    "torch/utils/_contextlib.py:124:decorate_context:return func(*args, **kwargs)",
    f"{_SCHED}:2110:event_loop_overlap:batch_result = self.run_batch(batch)",
    f"{_SCHED}:4870:run_batch:batch_result = self.model_worker.forward_batch_generation(",
    "srt/managers/tp_worker.py:675:forward_batch_generation:out = self.model_runner.forward(",
    f"{_RUNNER}:1860:forward:output = self._forward_raw(",
)
_MAIN = (
    "<frozen runpy>:198:_run_module_as_main",
    "<frozen runpy>:88:_run_code",
)
_NEW_MAIN = (
    *_MAIN,
    "launch_server.py:84:<module>:run_server(server_args)",
    "launch_server.py:67:run_server:launch_server(server_args)",
    "srt/entrypoints/http_server.py:3156:launch_server:) = Engine._launch_subprocesses(",
)
_NEW_DRAFT = (
    *_NEW_INIT,
    f"{_SCHED}:1133:init_model_worker:self.maybe_init_draft_worker()",
    f"{_SCHED}:1063:maybe_init_draft_worker:self.draft_worker = DraftWorkerClass(**draft_worker_kwargs)",
)
_NEW: dict[str, tuple[str, ...]] = {
    "main": _NEW_MAIN,
    "import": (*_MAIN, "launch_server.py:8:<module>:from sglang.srt.server_args import prepare_server_args"),
    "arg-parse": (*_MAIN, "launch_server.py:81:<module>:server_args = prepare_server_args(sys.argv[1:])"),
    "arg-validation": (
        *_MAIN,
        "launch_server.py:84:<module>:run_server(server_args)",
        "launch_server.py:29:run_server:server_args.resolve_once()",
        "srt/server_args.py:277:resolve_once:run_resolution_pipeline(self)",
        "srt/arg_groups/pipeline.py:306:run_resolution_pipeline:run_hook(step, ctx)",
    ),
    "config-load": (
        *_NEW_INIT[:1],
        f"{_SCHED}:512:__init__:self.init_model_config()",
        "srt/configs/model_config.py:214:from_server_args:return ModelConfig(",
        "srt/configs/model_config.py:108:__init__:self.hf_config = get_config(",
    ),
    "tokenizer-processor": (
        *_NEW_MAIN,
        "srt/entrypoints/engine.py:1339:_launch_subprocesses:"
        "tokenizer_manager, template_manager = init_tokenizer_manager_func(",
        "srt/entrypoints/engine.py:203:init_tokenizer_manager:"
        "tokenizer_manager = TokenizerManagerClass(server_args, port_args)",
        "srt/managers/tokenizer_manager.py:556:__init__:self.init_tokenizer_and_processor()",
    ),
    "process-spawn": (
        "lib/multiprocessing/process.py:314:_bootstrap:self.run()",
        "lib/multiprocessing/process.py:108:run:self._target(*self._args, **self._kwargs)",
    ),
    "device-init": (
        *_NEW_INIT[:1],
        f"{_SCHED}:536:__init__:bootstrap.init_parallel_runtime(",
        "srt/distributed/bootstrap.py:122:init_parallel_runtime:_set_device(device, gpu_id)",
    ),
    "dist-init": (
        *_NEW_INIT[:1],
        f"{_SCHED}:536:__init__:bootstrap.init_parallel_runtime(",
        "srt/distributed/bootstrap.py:141:init_parallel_runtime:init_distributed_environment(",
    ),
    "model-construct": (
        *_NEW_LOAD,
        "srt/model_loader/loader.py:1014:load_model:model = _initialize_model(",
        "srt/model_loader/loader.py:309:_initialize_model:model = model_class(**kwargs)",
    ),
    "weight-load": (
        *_NEW_LOAD,
        "srt/model_loader/loader.py:1020:load_model:self.load_weights_and_postprocess(",
        "srt/model_loader/loader.py:1029:load_weights_and_postprocess:"
        "DefaultModelLoader.load_weights_only(model, weights, target_device)",
        "srt/model_loader/loader.py:1063:load_weights_only:model.load_weights(weights)",
    ),
    "load": _NEW_LOAD,
    "init": _NEW_INIT,
    "worker": _NEW_WORKER,
    "draft-config-load": _NEW_DRAFT,
    "draft-worker-init": _NEW_DRAFT,
    "lora-init": (*_NEW_WORKER, f"{_RUNNER}:1405:init_lora_manager:self.lora_manager = LoRAManager("),
    "attn-backend-init": (
        *_NEW_INIT,
        f"{_SCHED}:1145:init_model_worker:self.init_all_attention_backends()",
        "srt/managers/tp_worker.py:429:init_attention_backends:"
        "self.model_runner.init_attention_backends()",
        f"{_RUNNER}:1122:init_attention_backends:backends = build_attention_backends(model_runner=self)",
        "srt/model_executor/model_runner_components/attention_backend_setup.py:256:"
        "_build_resolved_backend:attn_backend = _build_backend_from_str(",
    ),
    "kv-pool-init": (
        *_NEW_INIT,
        f"{_SCHED}:1137:init_model_worker:self.init_memory_pools()",
        f"{_SCHED}:1090:init_target_memory_pool:self.tp_worker.alloc_memory_pool(",
        "srt/managers/tp_worker.py:409:alloc_memory_pool:self.model_runner.alloc_memory_pool(",
        f"{_RUNNER}:982:alloc_memory_pool:result = self.kv_cache_configurator.configure(",
    ),
    "comm-buffer-init": (
        *_NEW_INIT,
        f"{_SCHED}:1146:init_model_worker:self.init_all_cuda_graphs()",
        f"{_SCHED}:1124:init_all_cuda_graphs:self.tp_worker.init_cuda_graphs()",
        "srt/managers/tp_worker.py:435:init_cuda_graphs:self.model_runner.init_cuda_graphs(",
        f"{_RUNNER}:1180:init_cuda_graphs:self._pre_initialize_flashinfer_allreduce_workspace()",
    ),
    "flashinfer-autotune": (
        *_NEW_INIT,
        f"{_SCHED}:1146:init_model_worker:self.init_all_cuda_graphs()",
        f"{_RUNNER}:1168:init_cuda_graphs:self.kernel_warmup()",
        "srt/model_executor/model_runner_components/flashinfer_autotune.py:92:run:"
        "model_runner._dummy_run(batch_size=model_runner.req_to_token_pool.size)",
    ),
    "graph-capture": (
        *_NEW_GRAPHS,
        f"{_SETUP}:370:capture_cuda_graphs:capture = capture_decode_graph(model_runner=model_runner)",
        f"{_SETUP}:780:capture_decode_graph:runner = GraphRunnerCls(model_runner)",
    ),
    "prefill-graph-capture": (
        *_NEW_GRAPHS,
        f"{_SETUP}:424:capture_cuda_graphs:prefill = capture_prefill_graph(",
        f"{_SETUP}:812:capture_prefill_graph:runner = PrefillCudaGraphRunner(model_runner)",
    ),
    "draft-graph-capture": (
        *_NEW_INIT,
        f"{_SCHED}:1146:init_model_worker:self.init_all_cuda_graphs()",
        f"{_SCHED}:1127:init_all_cuda_graphs:self.draft_worker.init_cuda_graphs()",
        "srt/speculative/eagle_worker.py:412:init_cuda_graphs:"
        "self.cuda_graph_runner = EAGLEDraftCudaGraphRunner(self)",
    ),
    "scheduler-init": (*_NEW_INIT[:1], f"{_SCHED}:592:__init__:self.init_grammar_backend()"),
    "pd-init": (*_NEW_INIT[:1], f"{_SCHED}:640:__init__:self.init_disaggregation()"),
    "warmup-request": _NEW_LOOP,
    "serving": _NEW_LOOP,
}  # fmt: skip

_MID_WORKER = (
    f"{_SCHED}:2782:run_scheduler_process:scheduler = Scheduler(",
    f"{_SCHED}:354:__init__:self.tp_worker = TpWorkerClass(",
    "srt/managers/tp_worker_overlap_thread.py:67:__init__:self.worker = TpModelWorker(",
    "srt/managers/tp_worker.py:96:__init__:self.model_runner = ModelRunner(",
)
_MID_INIT = (*_MID_WORKER, f"{_RUNNER}:241:__init__:self.initialize(min_per_gpu_memory)")
_MID_LOAD = (
    *_MID_INIT,
    f"{_RUNNER}:284:initialize:self.load_model()",
    f"{_RUNNER}:634:load_model:self.model = get_model(",
    "srt/model_loader/__init__.py:22:get_model:return loader.load_model(",
)
_MID_MAIN = (
    *_MAIN,
    "launch_server.py:14:<module>:launch_server(server_args)",
    "srt/entrypoints/http_server.py:1090:launch_server:tokenizer_manager, template_manager,"
    " scheduler_info = _launch_subprocesses(",
)
_MID: dict[str, tuple[str, ...]] = {
    "main": _MID_MAIN,
    "import": (*_MAIN, "launch_server.py:6:<module>:from sglang.srt.entrypoints.http_server import launch_server"),
    "arg-parse": (*_MAIN, "launch_server.py:11:<module>:server_args = prepare_server_args(sys.argv[1:])"),
    "arg-validation": (
        *_MAIN,
        "launch_server.py:11:<module>:server_args = prepare_server_args(sys.argv[1:])",
        "srt/server_args.py:2246:prepare_server_args:server_args = ServerArgs.from_cli_args(raw_args)",
        "<string>:261:__init__",
    ),
    "config-load": (
        f"{_SCHED}:2782:run_scheduler_process:scheduler = Scheduler(",
        f"{_SCHED}:241:__init__:self.init_model_config()",
        "srt/configs/model_config.py:78:__init__:self.hf_config = get_config(",
    ),
    "tokenizer-processor": (
        *_MID_MAIN,
        "srt/entrypoints/engine.py:815:_launch_subprocesses:"
        "tokenizer_manager, template_manager = _init_tokenizer_manager(server_args, port_args)",
        "srt/managers/tokenizer_manager.py:220:__init__:self.init_tokenizer_and_processor()",
    ),
    "process-spawn": _NEW["process-spawn"],
    "device-init": (
        *_MID_WORKER,
        f"{_RUNNER}:222:__init__:min_per_gpu_memory = self.init_torch_distributed()",
        f"{_RUNNER}:502:init_torch_distributed:torch.get_device_module(self.device).set_device(self.gpu_id)",
    ),
    "dist-init": (
        *_MID_WORKER,
        f"{_RUNNER}:222:__init__:min_per_gpu_memory = self.init_torch_distributed()",
        f"{_RUNNER}:545:init_torch_distributed:init_distributed_environment(",
    ),
    "model-construct": (
        *_MID_LOAD,
        "srt/model_loader/loader.py:449:load_model:model = _initialize_model(",
        "srt/model_loader/loader.py:174:_initialize_model:return model_class(",
    ),
    "weight-load": (
        *_MID_LOAD,
        "srt/model_loader/loader.py:461:load_model:self.load_weights_and_postprocess(",
        "srt/model_loader/loader.py:470:load_weights_and_postprocess:model.load_weights(weights)",
    ),
    "load": _MID_LOAD,
    "init": _MID_INIT,
    "worker": _MID_INIT,
    "draft-config-load": (f"{_SCHED}:2782:run_scheduler_process:scheduler = Scheduler(",
                          f"{_SCHED}:380:__init__:self.draft_worker = EAGLEWorker("),
    "draft-worker-init": (f"{_SCHED}:2782:run_scheduler_process:scheduler = Scheduler(",
                          f"{_SCHED}:380:__init__:self.draft_worker = EAGLEWorker("),
    "lora-init": (*_MID_INIT, f"{_RUNNER}:331:initialize:self.init_lora_manager()"),
    "attn-backend-init": (*_MID_INIT, f"{_RUNNER}:345:initialize:self.init_attention_backend()",
                          f"{_RUNNER}:1480:init_attention_backend:self.attn_backend = self._get_attention_backend()"),
    "kv-pool-init": (*_MID_INIT, f"{_RUNNER}:340:initialize:self.init_memory_pool(",
                     f"{_RUNNER}:1200:init_memory_pool:self.max_total_num_tokens = self.profile_max_num_token("),
    "comm-buffer-init": (*_MID_INIT, f"{_RUNNER}:346:initialize:self.init_device_graphs()"),
    "flashinfer-autotune": (*_MID_INIT, f"{_RUNNER}:346:initialize:self.kernel_warmup()",
                            f"{_RUNNER}:1960:kernel_warmup:self._flashinfer_autotune()",
                            f"{_RUNNER}:1988:_flashinfer_autotune:self._dummy_run("),
    "graph-capture": (*_MID_INIT, f"{_RUNNER}:347:initialize:self.init_cuda_graphs()",
                      f"{_RUNNER}:1540:init_cuda_graphs:self.cuda_graph_runner = CudaGraphRunner(self)"),
    "prefill-graph-capture": (*_MID_INIT, f"{_RUNNER}:352:initialize:self.init_piecewise_cuda_graphs()",
                              f"{_RUNNER}:1580:init_piecewise_cuda_graphs:self.piecewise_cuda_graph_runner ="
                              " PiecewiseCudaGraphRunner(self)"),
    "draft-graph-capture": (f"{_SCHED}:2782:run_scheduler_process:scheduler = Scheduler(",
                            f"{_SCHED}:380:__init__:self.draft_worker = EAGLEWorker(",
                            "srt/speculative/eagle_worker.py:160:__init__:self.init_cuda_graphs()"),
    "scheduler-init": (f"{_SCHED}:2782:run_scheduler_process:scheduler = Scheduler(",
                       f"{_SCHED}:520:__init__:self.grammar_backend = create_grammar_backend("),
    "pd-init": (f"{_SCHED}:2782:run_scheduler_process:scheduler = Scheduler(",
                f"{_SCHED}:560:__init__:self.init_disaggregation()"),
    "warmup-request": (
        f"{_SCHED}:2815:run_scheduler_process:scheduler.event_loop_overlap()",
        "torch/utils/_contextlib.py:120:decorate_context:return func(*args, **kwargs)",
        f"{_SCHED}:783:event_loop_overlap:result = self.run_batch(batch)",
        f"{_SCHED}:1701:run_batch:self.tp_worker.forward_batch_generation(model_worker_batch)",
    ),
}  # fmt: skip
_MID["serving"] = _MID["warmup-request"]

_VLLM_CORE = (
    "vllm/v1/engine/core.py:699:run_engine_core:engine_core = EngineCoreProc(*args, **kwargs)",
    "vllm/v1/engine/core.py:498:__init__:super().__init__(vllm_config, executor_class, log_stats,",
)
_VLLM_WORKER = (
    "vllm/v1/executor/multiproc_executor.py:571:worker_main:worker = WorkerProc(*args, **kwargs)",
    "vllm/v1/executor/multiproc_executor.py:430:__init__:self.worker.load_model()",
)
_VLLM_MAIN = (
    "/usr/local/bin/vllm:8:<module>:sys.exit(main())",
    "vllm/entrypoints/cli/main.py:54:main:args.dispatch_function(args)",
    "vllm/entrypoints/cli/serve.py:57:cmd:uvloop.run(run_server(args))",
)
_VLLM: dict[str, tuple[str, ...]] = {
    "main": _VLLM_MAIN,
    "import": ("/usr/local/bin/vllm:4:<module>:from vllm.entrypoints.cli.main import main",),
    "arg-validation": (*_VLLM_MAIN, "vllm/engine/arg_utils.py:1049:create_model_config:return ModelConfig("),
    "config-load": (*_VLLM_MAIN, "vllm/engine/arg_utils.py:1049:create_model_config:return ModelConfig("),
    "model-construct": (*_VLLM_WORKER, "vllm/v1/worker/gpu_worker.py:213:load_model:self.model_runner.load_model(eep_scale_up=eep_scale_up)",
                        "vllm/model_executor/model_loader/base_loader.py:45:load_model:model = initialize_model(vllm_config=vllm_config,"),
    "weight-load": (*_VLLM_WORKER, "vllm/v1/worker/gpu_worker.py:213:load_model:self.model_runner.load_model(eep_scale_up=eep_scale_up)",
                    "vllm/model_executor/model_loader/base_loader.py:51:load_model:self.load_weights(model, model_config)"),
    "device-init": (_VLLM_WORKER[0], "vllm/v1/executor/multiproc_executor.py:425:__init__:self.worker.init_device()",
                    "vllm/v1/worker/gpu_worker.py:178:init_device:torch.cuda.set_device(self.device)"),
    "dist-init": (_VLLM_WORKER[0], "vllm/v1/executor/multiproc_executor.py:425:__init__:self.worker.init_device()",
                  "vllm/v1/worker/gpu_worker.py:193:init_device:init_worker_distributed_environment("),
    "kv-pool-init": (*_VLLM_CORE, "vllm/v1/engine/core.py:92:__init__:self._initialize_kv_caches(vllm_config)"),
    "memory-profiling": (*_VLLM_CORE, "vllm/v1/engine/core.py:92:__init__:self._initialize_kv_caches(vllm_config)",
                         "vllm/v1/engine/core.py:190:_initialize_kv_caches:self.model_executor.determine_available_memory())",
                         "vllm/v1/worker/gpu_worker.py:263:determine_available_memory:self.model_runner.profile_run()",
                         "vllm/v1/worker/gpu_model_runner.py:3361:profile_run:= self._dummy_run(self.max_num_tokens, is_profile=True)"),
    "graph-capture": (*_VLLM_CORE, "vllm/v1/engine/core.py:92:__init__:self._initialize_kv_caches(vllm_config)",
                      "vllm/v1/worker/gpu_worker.py:350:compile_or_warm_up_model:cuda_graph_memory_bytes = self.model_runner.capture_model()",
                      "vllm/v1/worker/gpu_model_runner.py:3480:capture_model:self._capture_cudagraphs("),
}  # fmt: skip

# Frames between the wrapper's `try` and the captured model.
CAPTURED: dict[tuple[str, str], tuple[str, ...]] = {
    ("new", "graph-capture"): (
        f"{_DECODE}:600:__init__:self.capture()",
        f"{_DECODE}:1303:_capture:self._capture_one_stream()",
        f"{_DECODE}:1359:_capture_one_stream:self.capture_one_shape(",
        f"{_DECODE}:1495:capture_one_shape:self.backend.capture(",
        f"{_DECODE}:1462:run_once:logits_output_or_pp_proxy_tensors = forward(",
    ),
    ("new", "prefill-graph-capture"): (
        f"{_PREFILL}:402:__init__:self.capture()",
        f"{_PREFILL}:702:capture:self.capture_one_shape(num_tokens)",
    ),
    ("new", "draft-graph-capture"): (
        "srt/speculative/eagle_draft_cuda_graph_runner.py:160:__init__:self.capture()",
        "srt/speculative/eagle_draft_cuda_graph_runner.py:352:capture_one_batch_size:out = run_once()",
    ),
    ("mid", "graph-capture"): (
        f"{_OLD_GRAPH}:338:__init__:self.capture()",
        f"{_OLD_GRAPH}:446:capture:) = self.capture_one_batch_size(bs, forward)",
        f"{_OLD_GRAPH}:598:capture_one_batch_size:run_once()",
        f"{_OLD_GRAPH}:584:run_once:logits_output_or_pp_proxy_tensors = forward(",
    ),
    ("mid", "prefill-graph-capture"): (
        "srt/model_executor/piecewise_cuda_graph_runner.py:252:__init__:self.capture()",
        "srt/model_executor/piecewise_cuda_graph_runner.py:390:capture_one_batch_size:run_once()",
    ),
    ("mid", "draft-graph-capture"): (
        "srt/speculative/eagle_draft_cuda_graph_runner.py:98:__init__:self.capture()",
        "srt/speculative/eagle_draft_cuda_graph_runner.py:240:capture_one_batch_size:out = run_once()",
    ),
}


def outer(style: str, phase: str) -> tuple[str, ...]:
    """The frames from the outermost one down to the code of the phase."""
    if phase == "none":
        return ()
    table = {"new": _NEW, "mid": _MID, "old": _MID, "vllm": _VLLM}[style]
    if phase not in table:
        raise ValueError(f"no outer frames for {phase!r} in style {style}: say `base: none`")
    return table[phase]


def captured(style: str, phase: str) -> tuple[str, ...]:
    """The frames inside of the capture wrapper; empty for other phases."""
    return CAPTURED.get(("mid" if style == "old" else style, phase), ())

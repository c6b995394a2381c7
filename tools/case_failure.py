"""What a failing rank prints, and what the others and the launcher make of it.

In:  a Log with its Spec. Out: lines in the Log, the root among them marked.
Not: the way up (case_startup.py).

A line of a description is raw unless it begins with `@`: `@ text` is a record of each
failing rank, `@- text` a raw line of each, `@* text` a record of every rank, `@main text`
one of the main process, `@TP3 text` one of that rank. `!` before all that marks the root.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from case_frames import captured, outer
from case_spec import Link, Spec
from case_text import MAIN, Log, Printed

from triage.core.phases import order

_WRAPPERS = {
    "graph-capture": ("Capture cuda graph failed", "decode"),
    "prefill-graph-capture": ("Capture prefill CUDA graph failed", "prefill"),
    "draft-graph-capture": ("Capture cuda graph failed", "decode"),
}
_MARK = re.compile(r"(!?)(?:@(\*|-|main|[A-Z][A-Z0-9 _]*?\d)? )?(.*)", re.DOTALL)


def fail(log: Log) -> None:
    """The lines before, the failure itself, and its end."""
    spec = log.spec
    for line in spec.before:
        tell(log, line)
    log.wait(1)
    begin = len(log.lines)
    plain = not any(line.startswith("!") for line in spec.lines)
    excepted = bool(spec.error or spec.chain)
    for number, line in enumerate(spec.lines):
        tell(log, line, root=plain and number == 0 and not excepted, failure=True)
    if excepted:
        _tracebacks(log, root=plain)
    if len(log.lines) > begin:  # the place where the failure begins, for `cut`
        log.lines[begin] = replace(log.lines[begin], failure=True)
    finish(log)


def tell(log: Log, line: str, *, root: bool = False, failure: bool = False) -> None:
    """One line of a description, in every place where it belongs."""
    found = _MARK.fullmatch(line)
    assert found is not None
    root |= bool(found[1])
    if not line.removeprefix("!").startswith("@"):
        process = next(iter(log.spec.failing), MAIN)
        log.raw(log.fill(found[3], process), process, root=root, failure=failure)
        return
    where = found[2] or ""
    spec, failing = log.spec, log.spec.failing or (MAIN,)
    if where == "main":
        targets: tuple[int, ...] = (MAIN,)
    elif where == "*":
        targets = tuple(range(spec.world))
    elif where in ("", "-"):
        targets = failing
    else:
        targets = (_rank(spec, where),)
    for process in targets:
        text = log.fill(found[3], process)
        if where == "-":
            log.raw(text, process, root=root, failure=failure)
        else:
            log.say(text, process, root=root, failure=failure)
        root = False
        log.wait(0.02)


def _rank(spec: Spec, name: str) -> int:
    for index, tag in enumerate(spec.tags):
        if tag == name or name in tag.split():
            return index
    raise ValueError(f"{spec.name}: no rank {name}")


def _tracebacks(log: Log, *, root: bool) -> None:
    spec = log.spec
    blocks = []
    for process in spec.failing or (MAIN,):
        before = len(log.lines)
        _traceback(log, process, root=root)
        log.wait(0.15)
        blocks.append(log.lines[before:])
        del log.lines[before:]
    blocks = [_later(block, 0 if spec.weave or spec.style == "vllm" else 1) for block in blocks]
    lines = _woven(log, blocks) if spec.weave else [line for block in blocks for line in block]
    seen = False
    for line in lines:
        log.lines.append(replace(line, root=line.root and not seen))
        seen |= line.root


def _later(block: list[Printed], blank: int) -> list[Printed]:
    """The block with an empty line behind it, as the logger prints one."""
    return [*block, *([replace(block[-1], text="", root=False)] * blank)]


def _woven(log: Log, blocks: list[list[Printed]]) -> list[Printed]:
    """The blocks' lines in turns of one to three, as processes on one pipe print them."""
    chance, rest = log.spec.random, [list(block) for block in blocks]
    lines: list[Printed] = []
    while any(rest):
        block = chance.choice([item for item in rest if item])
        turn = chance.randrange(1, 4)
        lines += block[:turn]
        del block[:turn]
    return lines


def _traceback(log: Log, process: int, *, root: bool) -> None:
    spec = log.spec
    links = spec.chain or (Link(error=spec.error, frames=spec.frames),)
    if spec.chain and spec.error:
        links = (*spec.chain, Link(error=spec.error, frames=spec.frames))
    inner = captured(spec.style, spec.phase) if not spec.base else ()
    base = outer(spec.style, spec.base or _base(spec))
    head = spec.head
    if not head and process != MAIN:
        head = "Scheduler hit an exception:"
    if spec.wrapped:
        message = links[0].error.partition(": ")[2] or links[0].error
        what, graphs = _WRAPPERS.get(spec.phase, _WRAPPERS["graph-capture"])
        code = "raise Exception("
        links = (*links, Link(error=f"Exception: {what}: {message}\n{_solutions(spec, graphs)}",
                              frames=(_raises(spec, inner, code),)))  # fmt: skip
    for number, link in enumerate(links):
        if number:
            said = ("The above exception was the direct cause of the following exception:"
                    if link.relation == "cause" else
                    "During handling of the above exception, another exception occurred:")  # fmt: skip
            _print(log, process, f"\n{said}\n")
        last = number == len(links) - 1
        frames = [*(base if last else ()), *(inner if number == 0 else ()), *link.frames]
        _head(log, process, head if number == 0 else "", first=number == 0)
        for frame in frames:
            _frame(log, process, frame)
        named = root and number == spec.link % len(links)
        _print(log, process, log.fill(link.error, process), root=named)


def _base(spec: Spec) -> str:
    if spec.ranks == "main" and spec.phase not in (
        "import", "arg-parse", "arg-validation", "config-load", "tokenizer-processor",
    ):  # fmt: skip
        return "main"
    return "serving" if spec.phase == "warmup-or-first-forward" else spec.phase


def _raises(spec: Spec, inner: tuple[str, ...], code: str) -> str:
    file, line, function = (inner[0] if inner else "srt/model_executor/cuda_graph_runner.py:340:"
                            "__init__").split(":")[:3]  # fmt: skip
    return f"{file}:{int(line) + 2}:{function}:{code}"


def _solutions(spec: Spec, graphs: str) -> str:
    if spec.style == "new":
        return ("Possible solutions:\n"
                "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
                f"2. set --cuda-graph-max-bs-{graphs} to a smaller value (e.g., 16)\n"
                f"3. disable {graphs} CUDA graph by --cuda-graph-backend-{graphs}=disabled."
                " (Not recommended. Huge performance loss)\n"
                "Open an issue on GitHub https://github.com/sgl-project/sglang/issues/new/choose \n")  # fmt: skip
    return ("Possible solutions:\n"
            "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
            "2. set --cuda-graph-max-bs to a smaller value (e.g., 16)\n"
            "3. disable torch compile by not using --enable-torch-compile\n"
            "4. disable CUDA graph by --disable-cuda-graph. (Not recommended. Huge performance loss)\n"
            "Open an issue on GitHub https://github.com/sgl-project/sglang/issues/new/choose \n")  # fmt: skip


def _print(log: Log, process: int, text: str, *, root: bool = False) -> None:
    if log.spec.style == "vllm" and process != MAIN:
        for part in text.split("\n"):
            log.say(f"[multiproc_executor.py:597] {part}", process, level="ERROR", root=root,
                    failure=True)  # fmt: skip
            root = False
        return
    log.raw(text, process, root=root, failure=True)


def _head(log: Log, process: int, head: str, *, first: bool) -> None:
    text = "Traceback (most recent call last):"
    if log.spec.style == "vllm" and process != MAIN:
        if first:
            _print(log, process, head.rstrip(":") if head != "Scheduler hit an exception:"
                   else "WorkerProc failed to start.")  # fmt: skip
        _print(log, process, text)
    elif not first:
        log.raw(text, process, failure=True)
    elif head.startswith("raw "):
        log.raw(f"{head.removeprefix('raw ')}\n{text}", process, failure=True)
    elif head:
        log.say(f"{head} {text}", process, failure=True)
    else:
        log.raw(text, process, failure=True)


def _frame(log: Log, process: int, frame: str) -> None:
    file, line, function, *code = frame.split(":", 3)
    _print(log, process, f'  File "{log.path(file)}", line {line}, in {function}')
    if code:
        _print(log, process, f"    {code[0]}")
        if log.python != "3.10" and code[0].endswith("(") and " = " in code[0]:
            name, _, call = code[0].partition(" = ")
            _print(log, process, f"    {' ' * (len(name) + 3)}{'^' * len(call)}")


def finish(log: Log) -> None:
    """The usual end, or what the description says instead, and what comes behind it."""
    spec = log.spec
    end = spec.end
    if end is None:
        end = _usual(spec)
    elif isinstance(end, str):
        end = [end]
    for item in (*end, *spec.after):
        _ENDS[item](log) if item in _ENDS else _other(log, item)


def _usual(spec: Spec) -> list[str]:
    if not spec.fails or order(spec.phase) <= order("arg-validation"):
        return []
    if spec.ranks == "main":
        return ["tree"] if spec.style == "new" else []
    if spec.style == "vllm":
        return ["core-failed"]
    if spec.phase in ("warmup-request", "serving", "warmup-or-first-forward"):
        return ["crash"]
    return ["died -3"] if spec.dp > 1 and spec.style == "new" else ["sigquit"]


def _other(log: Log, item: str) -> None:
    if item.startswith("died "):
        _died(log, int(item.removeprefix("died ")))
    elif item.startswith("wait "):
        log.wait(float(item.removeprefix("wait ")))
    else:
        tell(log, item)


def _sigquit(log: Log) -> None:
    word = "proces" if log.spec.style == "old" else "process"
    log.say(f"Received sigquit from a child {word}. It usually means the child failed.")
    if log.spec.style == "new":
        _tree(log)


def _tree(log: Log) -> None:
    log.say(f"kill_process_tree called: parent_pid={log.pid_of(MAIN)}, include_parent=True,"
            f" pid={log.pid_of(MAIN)}")  # fmt: skip


def _crash(log: Log) -> None:
    log.say("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
    if log.spec.style == "new":
        log.say("Sleeping 5 seconds before crash diagnostics to let GPU activity settle.")
        log.wait(5)
        for i in range(log.spec.world):
            log.say(f"Pyspy failed (py-spy dump --native --pid {log.pid_of(i)})."
                    " Error: /bin/sh: 1: py-spy: not found\n")  # fmt: skip
        log.say("Waiting 60.0 seconds for CUDA coredumps before exiting.")


def _died(log: Log, code: int) -> None:
    """The main process misses a scheduler; the hint that it prints is general."""
    rank = next(iter(log.spec.failing), 0)
    log.wait(4)
    frames = (
        *outer("new", "main"),
        "srt/entrypoints/engine.py:1350:_launch_subprocesses:scheduler_init_result.wait_for_ready()",
        "srt/entrypoints/engine.py:2040:_wait_for_scheduler_ready:raise RuntimeError(",
    )
    log.raw("Traceback (most recent call last):")
    for frame in frames:
        _frame(log, MAIN, frame)
    log.raw(f"RuntimeError: Rank {0 if log.spec.dp > 1 else rank} scheduler died during initialization"
            f" (exit code: {code}). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer."
            " Run `dmesg -T | grep -i oom` to check.")  # fmt: skip


def _peers(log: Log, error: str, frames: tuple[str, ...]) -> None:
    spec = log.spec
    for process in range(spec.world):
        if process in spec.failing:
            continue
        log.wait(0.1)
        phase = (
            spec.phase if spec.phase not in ("import", "arg-parse", "container") else "dist-init"
        )
        log.say("Scheduler hit an exception: Traceback (most recent call last):", process)
        for frame in (*outer(spec.style, phase)[:5], *frames):
            _frame(log, process, frame)
        log.raw(
            error.replace("{port}", str(38210 + process)).replace("{rank}", str(process)) + "\n",
            process,
        )


def _peers_gloo(log: Log) -> None:
    _peers(log, "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection"
           " closed by peer [127.0.0.1]:{port}",
           ("torch/distributed/distributed_c10d.py:4159:barrier:work.wait()",))  # fmt: skip


def _peers_store(log: Log) -> None:
    _peers(log, "torch.distributed.DistBackendError: [{rank}] is setting up NCCL communicator and"
           " retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0')"
           " got error: Connection was likely closed. Did the remote server shutdown or crash?",
           ("torch/distributed/distributed_c10d.py:2806:all_reduce:work = group.allreduce([tensor], opts)",))  # fmt: skip


def _peers_nccl(log: Log) -> None:
    spec = log.spec
    for process in range(spec.world):
        if process not in spec.failing:
            log.wait(0.1)
            log.raw(f"[rank{process}]:[E{log.now:%m%d %H:%M:%S}.118305120 ProcessGroupNCCL.cpp:2068]"
                    f" [PG ID 2 PG GUID 3 Rank {process}] Process group watchdog thread terminated with"
                    " exception: NCCL error: remote process exited or there was a network error, NCCL"
                    " version 2.28.9", process)  # fmt: skip


def _watchdog(log: Log) -> None:
    log.wait(300)
    for process in range(log.spec.world):
        log.say("Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)", process)


def _leaks(log: Log) -> None:
    log.raw(f"/usr/lib/python{log.python}/multiprocessing/resource_tracker.py:279: UserWarning:"
            " resource_tracker: There appear to be 1 leaked shared_memory objects to clean up at"
            " shutdown\n  warnings.warn('resource_tracker: There appear to be %d '")  # fmt: skip
    log.raw("[rank0]:[W1104 11:02:49.000000000 ProcessGroupNCCL.cpp:1538] Warning: WARNING:"
            " destroy_process_group() was not called before program exit, which can leak resources.")  # fmt: skip


def _core_failed(log: Log) -> None:
    core = f"(EngineCore_DP0 pid={log.pid_of(MAIN) + 60}) "
    head = f"ERROR {log.now:%m-%d %H:%M:%S} [core.py:708] "
    for text in (
        "EngineCore failed to start.",
        "Traceback (most recent call last):",
        f'  File "{log.site}/vllm/v1/engine/core.py", line 699, in run_engine_core',
        "    engine_core = EngineCoreProc(*args, **kwargs)",
        f'  File "{log.site}/vllm/v1/executor/multiproc_executor.py", line 508, in wait_for_ready',
        "    raise e from None",
        "Exception: WorkerProc initialization failed due to an exception in a background process."
        " See stack trace for root cause.",
    ):
        log.raw(core + head + text)
    log.wait(1)
    for text in (
        "Traceback (most recent call last):",
        '  File "/usr/local/bin/vllm", line 8, in <module>',
        "    sys.exit(main())",
        f'  File "{log.site}/vllm/v1/engine/utils.py", line 761, in wait_for_engine_startup',
        '    raise RuntimeError("Engine core initialization failed. "',
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    ):
        log.raw(log.stamp() + text)


_ENDS: dict[str, Callable[[Log], None]] = {
    "sigquit": _sigquit,
    "tree": _tree,
    "crash": _crash,
    "peers-gloo": _peers_gloo,
    "peers-store": _peers_store,
    "peers-nccl": _peers_nccl,
    "watchdog": _watchdog,
    "leaks": _leaks,
    "core-failed": _core_failed,
    "none": lambda _: None,
    "killed": lambda log: log.raw("Killed"),
}

"""Which line is the root when several ranks, libraries and wrappers all complain."""

from __future__ import annotations

import pytest

from triage.core.causes import Cause, Role, Severity
from triage.core.diagnosis import Diagnosis
from triage.core.log.diagnose import diagnose

ARGS = "[2026-07-01 12:00:00] server_args={{'model_path': '/models/x', 'tp_size': {tp}}}\n"
PEER = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4"
SIGQUIT = "[2026-07-01 12:00:09] Received sigquit from a child process. It usually means the child failed.\n"
NCCL = "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)"


def record(rank: str, error: str, *, function: str = "f", file: str = "/a/sglang/srt/x.py") -> str:
    return (
        f"[2026-07-01 12:00:05 {rank}] Scheduler hit an exception: Traceback (most recent call last):\n"
        f'  File "{file}", line 7, in {function}\n    raise X(\n{error}\n\n'
    )


def started(tp: int) -> str:
    return ARGS.format(tp=tp) + "".join(
        f"[2026-07-01 12:00:01 TP{n}] Init parallel begin.\n" for n in range(tp)
    )


def found(text: str, *causes: Cause) -> Diagnosis:
    return diagnose([text.encode()], causes)


def root_text(d: Diagnosis) -> str | None:
    return d.root.text if d.root else None


def line_of(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.split("\n"), start=1) if part in line)


def test_a_communication_error_that_stands_alone_is_the_root() -> None:
    generic = Cause(id="generic", title="t", role=Role.CASCADE, patterns=("NCCL error: unhandled",))
    text = started(2) + record("TP1", NCCL) + record("TP0", NCCL) + SIGQUIT
    d = found(text, generic)
    assert root_text(d) == NCCL
    assert (d.ranks, d.cause) == (("all",), None)
    assert d.root is not None
    assert d.root.line == line_of(text, NCCL)


def test_a_load_barrier_that_stands_alone_is_the_root_and_is_about_loading() -> None:
    error = "ValueError: TP rank 1 could finish the model loading, but there are other ranks that didn't"
    d = found(started(2) + record("TP1", error) + SIGQUIT)
    assert (root_text(d), d.ranks, d.phase) == (error, ("TP1",), "weight-load")


def test_what_the_launcher_says_is_still_no_reason() -> None:
    d = found(started(2) + SIGQUIT)
    assert (d.outcome, d.root) == ("failed", None)


def test_the_silent_rank_leads_when_its_peers_lost_it() -> None:
    text = started(8) + "".join(record(f"TP{n}", PEER) for n in range(8) if n != 5) + SIGQUIT
    d = found(text)
    assert (d.root, d.ranks) == (None, ("TP5",))


def test_a_named_communication_error_gives_way_to_the_odd_rank() -> None:
    system = Cause(id="system", title="t", patterns=("unhandled system error",))
    text = started(8) + "".join(record(f"TP{n}", NCCL) for n in range(8) if n != 5)
    d = found(text + record("TP5", "TypeError: unsupported operand"), system)
    assert (d.cause, d.ranks) == (None, ("TP5",))


def test_of_equal_exceptions_the_first_counts_though_only_the_second_ended_the_process() -> None:
    error = "ValueError: Free memory on device (1/2 GiB) is less than desired"
    head = "(EngineCore_DP0 pid=412) "
    text = head + "ERROR 02-20 06:00:41 [core.py:936] It is logged\n"
    text += head + "ERROR 02-20 06:00:41 [core.py:936] Traceback (most recent call last):\n"
    text += head + 'ERROR 02-20 06:00:41 [core.py:936]   File "/x/vllm/core.py", line 9, in run\n'
    text += head + f"ERROR 02-20 06:00:41 [core.py:936] {error}\n"
    text += head + "Process EngineCore_DP0:\n" + head + "Traceback (most recent call last):\n"
    text += head + '  File "/usr/lib/python3.12/process.py", line 3, in _bootstrap\n'
    text += head + error + "\n"
    d = found(text)
    assert d.root is not None
    assert (d.root.line, d.root.text, d.ranks) == (4, error, ("main",))


WATCHDOG = (
    "[rank1]:[E223 11:14:34.002 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective"
    " operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE) ran for 600000 ms\n"
)


def test_an_abort_gives_way_to_the_watchdog_above_it() -> None:
    text = started(2) + WATCHDOG
    text += "terminate called after throwing an instance of 'c10::DistBackendError'\n"
    text += "Fatal Python error: Aborted\n" + SIGQUIT
    d = found(text)
    assert d.root is not None
    assert (d.root.line, d.root.rank) == (line_of(text, "Watchdog caught"), "TP1")


def test_an_abort_gives_way_to_a_librarys_complaint_above_it() -> None:
    text = started(2) + "/build/ibgda.cpp:2234: NULL value Unable to create ah.\n"
    text += "terminate called after throwing an instance of 'EPException'\n"
    assert (
        root_text(found(text + SIGQUIT)) == "/build/ibgda.cpp:2234: NULL value Unable to create ah."
    )


def test_an_abort_alone_is_the_root_and_what_it_says_names_it() -> None:
    text = started(2) + "terminate called after throwing an instance of 'std::runtime_error'\n"
    d = found(text + "  what():  table is full at 0x7f01\n" + SIGQUIT)
    assert root_text(d) == "terminate called after throwing an instance of 'std::runtime_error'"
    assert "table is full at <hex>" in d.fingerprint_of


def test_a_complaint_that_every_rank_survived_is_no_reason() -> None:
    complaint = Cause(id="complaint", title="t", patterns=("Unable to create ah",))
    text = started(2) + "/build/ibgda.cpp:2234: NULL value Unable to create ah.\n"
    text += "".join(
        f"[2026-07-01 12:00:03 TP{n}] Load weight begin. avail mem=1 GB\n" for n in (0, 1)
    )
    d = found(text + record("TP0", "ValueError: x"), complaint)
    assert (d.cause, root_text(d)) == (None, "ValueError: x")


def test_the_first_of_many_device_asserts_is_the_root() -> None:
    asserted = "../aten/IndexKernel.cu:92: operator(): block: [{},0,0], thread: [0,0,0] Assertion `i < n` failed.\n"
    text = started(2) + "".join(asserted.format(n) for n in range(300))
    text += record("TP0", "RuntimeError: CUDA error: device-side assert triggered") + SIGQUIT
    d = found(text)
    assert d.root is not None
    assert d.root.line == 4


@pytest.mark.parametrize(
    "line",
    [
        "thread '<unnamed>' panicked at src/main.rs:10:5:",
        "F1129 12:00:00.123456  4242 socket.cpp:77] Check failed: fd >= 0",
        "python: Foo.cpp:12: void f(): Assertion `x' failed.",
        'exec: "python": executable file not found in $PATH',
        "/opt/start.sh: line 7: sglang: command not found",
        "Error response from daemon: could not select device driver",
        "!!!!!!! Segfault encountered !!!!!!!",
        "Bus error (core dumped)",
    ],
)
def test_a_process_that_cannot_go_on_says_so_in_many_ways(line: str) -> None:
    d = found(started(2) + line + "\n")
    assert (d.outcome, root_text(d)) == ("failed", line)


@pytest.mark.parametrize(
    "line",
    [
        "Killed",
        "/opt/start.sh: line 12:  4242 Killed                  python -m sglang.launch_server",
        "srun: error: node7: task 3: Killed",
        "mpirun noticed that process rank 3 with PID 0 on node a exited on signal 9 (Killed).",
        "sglang-1 exited with code 137",
        "sglang.service: Main process exited, code=killed, status=9/KILL",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    ],
)
def test_who_only_notices_an_end_is_no_root(line: str) -> None:
    d = found(started(2) + line + "\n")
    assert (d.outcome, d.root) == ("failed", None)


def test_the_rank_that_a_launcher_saw_dying_is_named() -> None:
    died = "RuntimeError: Rank 3 scheduler died during initialization (exit code: -9).\n"
    assert found(started(8) + died).ranks == ("TP3",)


def test_a_reason_on_one_rank_and_its_echo_elsewhere_share_no_cascade_with_what_was_survived() -> (
    None
):
    logged = "[2026-07-01 12:00:01 TP0] It failed, going on: Traceback (most recent call last):\n" \
        '  File "/a/x.py", line 1, in f\n    x()\nOSError: no cache\n' \
        "[2026-07-01 12:00:02 TP0] Init parallel ends. elapsed=1 s\n"  # fmt: skip
    d = found(started(2) + logged + record("TP1", "ValueError: x") + SIGQUIT)
    assert root_text(d) == "ValueError: x"
    assert len(d.cascade) == 1


def test_of_joined_logs_the_clock_tells_which_came_first() -> None:
    def node(name: str, second: int, error: str) -> str:
        text = record("TP0", error).replace("12:00:05", f"12:00:{second:02}")
        return "".join(f"[pod/{name}/sglang] {line}\n" for line in text.splitlines())

    late = node("sglang-0", 50, "ValueError: late")
    d = found(late + node("sglang-1", 20, "OSError: early"))
    assert root_text(d) == "OSError: early"
    assert root_text(found(late + node("sglang-1", 49, "OSError: as early"))) == "ValueError: late"


def test_a_refusal_in_a_container_is_in_the_container() -> None:
    line = "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6"
    assert (found(line + "\n").phase, found(line + "\n").outcome) == ("container", "failed")


FAULT = "Fatal Python error: Segmentation fault\n\n"
STACK = (
    "Thread 0x00007f01 (most recent call first):\n"
    '  File "/usr/lib/python3.11/threading.py", line 320 in wait\n\n'
    "Current thread 0x00007f02 (most recent call first):\n"
    '  File "/x/sglang/srt/distributed/device_communicators/pynccl_wrapper.py", line 9 in ncclCommInitRank\n'
    '  File "/x/sglang/srt/managers/scheduler.py", line 1 in __init__\n\n'
    "Extension modules: numpy._core (total: 1)\n"
)


def test_a_dying_interpreters_stack_tells_phase_and_cause() -> None:
    inside = Cause(id="inside", title="t", severity=Severity.FATAL,
                   patterns=("Segmentation fault",), frames=("ncclCommInitRank",))  # fmt: skip
    text = started(2) + FAULT + STACK
    d = found(text, inside)
    assert (d.cause, d.phase) == ("inside", "dist-init")
    assert found(text.replace("ncclCommInitRank", "f"), inside).cause is None
    assert found(text).root is not None
    assert found(text).traceback is None


def test_a_watchdogs_stacks_are_no_exception() -> None:
    d = found(started(2) + STACK)
    assert (d.outcome, d.cause) == ("hung", None)


def test_a_pattern_on_the_stack_has_the_line_of_the_death_as_root() -> None:
    inside = Cause(
        id="inside", title="t", severity=Severity.FATAL, patterns=("in ncclCommInitRank",)
    )
    text = started(2) + FAULT + STACK
    d = found(text, inside)
    assert d.root is not None
    assert (d.cause, d.root.line) == ("inside", line_of(text, "Fatal Python error"))


def test_what_a_cut_head_hides_makes_a_rival_doubtful_and_a_lone_cause_likely() -> None:
    said = "the number of tokens does not fit the buffer of this layout"
    plain = Cause(id="plain", title="t", patterns=("does not fit the buffer of",))
    precise = Cause(
        id="precise", title="t", patterns=(said,), context=("'tp_size': 2",), yields_to=()
    )
    error = record("TP0", f"ValueError: {said}")
    whole, cut = started(2) + error, error + SIGQUIT
    assert found(whole, precise).confidence == "high"
    d = found(cut, plain, precise)
    assert (d.cause, d.confidence, [a.cause for a in d.also]) == ("plain", "medium", ["precise"])
    alone = found(cut, precise)
    assert (alone.cause, alone.confidence) == ("precise", "medium")
    assert found(started(4) + error, precise).cause is None


def test_an_exception_without_frames_is_what_its_equal_with_frames_is() -> None:
    early = Cause(id="early", title="t", patterns=("out of room",), phases=("graph-capture",))
    late = Cause(
        id="late", title="t", patterns=("out of room",), phases=("weight-load",), frames=("load",)
    )
    error = "RuntimeError: out of room\n"
    framed = record("TP1", error.strip(), function="load_weights")
    d = found(error + framed + SIGQUIT, early, late)
    assert d.root is not None
    assert (d.cause, d.root.line) == ("late", 5)
    assert found(error + SIGQUIT, early, late).cause == "early"


def test_a_librarys_line_is_in_the_phase_of_the_exception_that_passes_it_on() -> None:
    failed = Cause(id="failed", title="t", patterns=("cuMemCreate failed",))
    text = (
        started(2)
        + "E0121 10:03:11.551047  2113 nvlink_transport.cpp:614] cuMemCreate failed: 800\n"
    )
    text += record(
        "TP0", "RuntimeError: registration failed", file="/a/sglang/srt/disaggregation/conn.py"
    )
    d = found(text, failed)
    assert (d.cause, d.phase) == ("failed", "pd-init")


def test_a_bare_assertion_gives_way_to_a_line_of_its_cause_and_rank() -> None:
    cause = Cause(id="c", title="t", patterns=("workspace could not be made", "^AssertionError$"))
    text = started(2) + "[2026-07-01 12:00:02 TP1] the workspace could not be made\n"
    d = found(text + record("TP1", "AssertionError"), cause)
    assert d.root is not None
    assert d.root.line == 4
    told = found(text + record("TP1", "AssertionError: the workspace could not be made"), cause)
    assert told.root is not None
    assert told.root.line > 4


def test_a_communicators_warning_is_about_the_distributed_start() -> None:
    bind = Cause(id="bind", title="t", patterns=("Failed to bind",))
    d = found(
        "node0:7:9 [1] transport/nvls.cc:287 NCCL WARN Failed to bind memory\n" + SIGQUIT, bind
    )
    assert (d.cause, d.phase) == ("bind", "dist-init")


def test_vllm_says_how_many_workers_there_are() -> None:
    text = "(EngineCore_DP0 pid=6) INFO 09-07 11:01:50 [core.py:96] Initializing a V1 LLM engine" \
        " (v0.15.1) with config: model='x', tensor_parallel_size=2, pipeline_parallel_size=1\n"  # fmt: skip
    for n in (0, 1):
        text += f"(Worker_TP{n} pid=7) ERROR 09-07 11:01:50 [w.py:7] RuntimeError: no device\n"
    d = found(text)
    assert (d.ranks, d.ranks_total) == (("all",), 2)
    assert found(text.replace("size=2", "size=4")).ranks == ("TP0", "TP1")


def test_a_panic_gives_way_to_the_exception_that_says_what_panicked() -> None:
    panic = "thread '<unnamed>' panicked at src/rules.rs:88:14:\nindex out of bounds\n"
    error = "pyo3_runtime.PanicException: index out of bounds"
    assert root_text(found(started(2) + panic + record("TP0", error))) == error


def test_two_dumps_written_character_by_character_are_no_exception() -> None:
    text = (
        started(2)
        + "Fatal Python error: Fatal Python error: Segmentation faultSegmentation fault\n\n"
    )
    text += "Current thread 0x01Current thread 0x02 (most recent call first):\n (most recent call first):\n"
    text += '  File "/x/pynccl_wrapper.py", line 9 in ncclCommInitRank\n'
    text += "Traceback (most recent call last):\n" \
        '  File "/x/launch_server.py", line 9, in <module>\n    run()\n' \
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: -11).\n"  # fmt: skip
    d = found(text)
    assert d.root is not None
    assert (d.root.line, d.phase) == (4, "dist-init")

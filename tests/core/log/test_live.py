"""A launch is stopped at the line after which it cannot come up, and at no other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.core.causes import Cause, Severity
from triage.core.log.live import Live
from triage.knowledge import load_causes

T = "[2026-07-01 12:00:00] "
HEALTHY = (
    T + "server_args={'model_path': '/models/x', 'error: ': 'Received sigquit from a child'}\n"
    + T + "Ignore import error when loading sglang.srt.models.x: No module named 'y'\n"
    + T + "Init parallel begin.\n"
    + T + "Load weight begin. avail mem=1 GB\n"
    + "\rMulti-thread loading shards:   0% Completed | 0/1 [00:00<?, ?it/s]\n"
    + T + 'INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 503 Service Unavailable\n'
    + "Traceback (most recent call last):\n"
    + '  File "a.py", line 1, in _freeze_gc\n    post()\n'
    + "requests.exceptions.ConnectTimeout: timed out\n"
    + T + "The server is fired up and ready to roll!\n"
    + T + "SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
    + T + "Subprocess scheduler_0 (pid=7) crashed with exit code -15. Triggering SIGQUIT\n"
    + T + "kill_process_tree called: parent_pid=1, include_parent=False, pid=1\n"
)  # fmt: skip


def watch(text: str, *causes: Cause) -> Live:
    live = Live(causes)
    live.feed(text.encode())
    return live


def test_a_healthy_launch_has_a_ready_line_and_no_fatal_one() -> None:
    live = watch(HEALTHY)
    assert (live.fatal_line, live.ready_line, live.phase) == (0, 11, "serving")


@pytest.mark.parametrize(
    "line",
    [
        "[2026-07-01 12:00:00 TP3] Scheduler hit an exception: Traceback (most recent call last):",
        "[2026-07-01 12:00:00] DetokenizerManager hit an exception: Traceback (most recent call last):",
        T + "Initialization failed. warmup error: Traceback (most recent call last):",
        T + "Received sigquit from a child process. It usually means the child failed.",
        T + "SIGQUIT received. signum=None, frame=None. It usually means one child failed.",
        T + "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 3): in use",
        T + "Subprocess detokenizer (pid=3663) crashed with exit code -9. Triggering SIGQUIT",
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9).",
        "sglang serve: error: unrecognized arguments: --enable-ep-moe",
        "python3: Error while finding module specification for 'sglang.launch_server' "
        "(ModuleNotFoundError: No module named 'sglang')",
        "/usr/bin/python3: No module named sglang",
        "Fatal Python error: Segmentation fault",
        "sglang-1  | " + T + "Received sigquit from a child process. It usually means",
        "simulated | " + T + "Received sigquit from a child process. It usually means",
    ],
)
def test_a_line_is_fatal(line: str) -> None:
    live = watch(T + "Init parallel begin.\n" + line + "\n" + line + "\n")
    assert live.fatal_line == 2
    assert live.phase == "dist-init"


def test_nothing_is_fatal_after_a_stop_that_was_asked_for() -> None:
    stop = T + "SIGTERM received. signum=None frame=None.\n"
    assert watch(stop + T + "SIGQUIT received. signum=None\n").fatal_line == 0


FATAL = Cause(id="f", title="t", patterns=("the sky fell",), severity=Severity.FATAL)


def test_a_fatal_causes_record_is_fatal() -> None:
    assert watch(T + "the sky fell\n", FATAL).fatal_line == 1


@pytest.mark.parametrize("line", ["nvcc: error: no file", "ptxas x.ptx: error: unsupported"])
def test_a_compilers_error_is_not(line: str) -> None:
    assert watch(line + "\n").fatal_line == 0


def test_a_script_goes_on_without_a_module_that_is_no_engine() -> None:
    assert watch("/usr/bin/python3: No module named pip\n").fatal_line == 0


@pytest.mark.parametrize("text", ["ValueError: the sky fell\n", "    the sky fell\n"])
def test_an_exception_that_may_be_caught_is_not(text: str) -> None:
    assert watch(text, FATAL).fatal_line == 0


@pytest.mark.parametrize("severity", [Severity.SUSPECT, Severity.INFO])
def test_a_suspicious_line_is_not(severity: Severity) -> None:
    cause = Cause(id="s", title="t", patterns=("the sky fell",), severity=severity)
    assert watch(T + "the sky fell\n", cause).fatal_line == 0


def test_a_hang_causes_line_is_not() -> None:
    cause = Cause(id="h", title="t", patterns=("begin",), severity=Severity.FATAL, hang=True)
    assert watch(T + "Init parallel begin.\n", cause).fatal_line == 0


def test_a_line_counts_when_it_is_finished() -> None:
    live = Live()
    live.feed((T + "Received sigquit from a child proc").encode())
    assert live.fatal_line == 0
    live.feed(b"ess.\n")
    assert live.fatal_line == 1


def test_an_unfinished_bar_does_not_hide_the_phase() -> None:
    live = watch("shards: 0% Completed | 0/1 [00:00<?, ?it/s]" + T + "Load weight end. x\n")
    assert live.phase == "kv-pool-init"


@given(st.lists(st.integers(1, 60), max_size=40))
@settings(max_examples=50, deadline=None)
def test_chunks_may_be_cut_anywhere(cuts: list[int]) -> None:
    raw = HEALTHY.replace("SIGTERM", "SIGFOO").encode()
    live, rest = Live([FATAL]), raw
    for cut in cuts:
        live.feed(rest[:cut])
        rest = rest[cut:]
    live.feed(rest)
    whole = watch(raw.decode(), FATAL)
    assert (live.phase, live.ready_line, live.fatal_line) == (
        whole.phase, whole.ready_line, whole.fatal_line,
    )  # fmt: skip


TAGGED = "[2026-07-01 12:00:00 TP{0}] "


def test_the_ranks_that_said_nothing_of_their_failure_are_unheard() -> None:
    live = Live()
    for rank in range(3):
        live.feed((TAGGED.format(rank) + "Load weight begin. avail mem=1 GB\n").encode())
    assert live.unheard() == {"TP0", "TP1", "TP2"}
    head = "Scheduler hit an exception: Traceback (most recent call last):\n"
    live.feed((TAGGED.format(2) + head).encode())
    assert (live.fatal_line, live.unheard()) == (4, frozenset({"TP0", "TP1"}))
    gone = 'RuntimeError: [gloo/transport/tcp/pair.cc:544] Connection closed by peer "\n'
    live.feed((TAGGED.format(0) + gone).encode())
    live.feed((T + "RuntimeError: Rank 1 scheduler died during initialization\n").encode())
    assert (live.fatal_line, live.unheard()) == (4, frozenset())


def test_no_rank_is_unheard_where_none_was_named() -> None:
    assert watch(T + "Received sigquit from a child process. It usually means\n").unheard() == set()


GOES_ON = (
    "Disabling overlap schedule since mamba no_buffer is not compatible with overlap schedule, try "
    "to use --disable-radix-cache if overlap schedule is necessary",
    "Qwen3NextForCausalLM with radix cache requires page_size=1 in the current Mamba scheduling mode "
    "(no_buffer), but got 64. Automatically setting page_size=1.",
    "Failed to download cubin from mirror, retrying with https://edge.example.org/x.cubin",
    "pidfd_open failed: Function not implemented, falling back to /proc",
    "Mooncake memory registration failed. Falling back to a copy through the host.",
    "Setup Custom allreduce failed with CUDA error: invalid argument. To silence this warning, specify "
    "--disable-custom-all-reduce explicitly.",
    "Failed to bind NUMA node 1: [Errno 22] Invalid argument; continuing without binding",
    "[W0102 06:18:21.180231002 TCPStore.cpp:347] [c10d] TCP client failed to connect/validate to host "
    "10.0.0.4:20000 - retrying (try=0, timeout=600000ms, delay=929ms): The client socket has failed "
    "to connect to any network address of (10.0.0.4, 20000).",
    "[E0102 06:18:21.180231002 socket.cpp:1023] [c10d] The client socket has failed to connect to any "
    "network address of (10.0.0.4, 20000).",
)


@pytest.mark.parametrize("text", GOES_ON)
def test_a_line_that_says_how_the_program_goes_on_ends_no_launch(text: str) -> None:
    live = Live(load_causes())
    live.feed(f"[2026-07-02 08:20:09 TP0] {text}\n".encode())
    assert live.fatal_line == 0


def test_the_same_trouble_without_a_way_out_does() -> None:
    live = Live(load_causes())
    live.feed(b"[2026-07-02 08:20:09 TP0] Mooncake memory registration failed.\n")
    assert live.fatal_line == 1


def test_a_prefix_that_only_the_first_lines_have_is_learned_however_the_bytes_come() -> None:
    mark = "[2026-06-27 02:57:33 TP{}] Load weight begin. avail mem=140.00 GB\n"
    raw = "".join(f"zone7 node=a5 ## {mark.format(i % 8)}" for i in range(16)).encode()
    raw += b"the collector was restarted and puts nothing in front\n" * 60
    raw += b"zone7 node=a5 ## [2026-06-27 02:57:40 TP0] max_total_num_tokens=1000, chunked\n"

    def follow(size: int) -> tuple[str, int, frozenset[str]]:
        live = Live()
        for at in range(0, len(raw), size):
            live.feed(raw[at : at + size])
        return live.phase, live.fatal_line, live.unheard()

    assert {follow(size) for size in (1, 7, 900, 1500, 5000, 1 << 16)} == {follow(1)}
    assert len(follow(1)[2]) == 8

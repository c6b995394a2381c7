"""A restarted engine logs several starts: the first that failed counts."""

from __future__ import annotations

import pytest

from triage.core.diagnosis import Diagnosis
from triage.core.log.diagnose import diagnose

ARGS = (
    "[2026-07-01 12:00:00] server_args={'model_path': '/models/x', 'tp_size': 2, 'port': 30000}\n"
)
BEGIN = "".join(f"[2026-07-01 12:00:01 TP{n}] Init parallel begin.\n" for n in (0, 1))
LOADS = "".join(f"[2026-07-01 12:00:02 TP{n}] Load weight begin. avail mem=1 GB\n" for n in (0, 1))
READY = "[2026-07-01 12:05:00] The server is fired up and ready to roll!\n"
SIGQUIT = "[2026-07-01 12:00:09] Received sigquit from a child process. It usually means the child failed.\n"
STOPPED = (
    "[2026-07-01 12:09:00] SIGTERM received. signum=15. Draining requests and shutting down...\n"
)


def failing(error: str, rank: str = "TP0") -> str:
    return (
        f"[2026-07-01 12:00:05 {rank}] Scheduler hit an exception: Traceback (most recent call last):\n"
        f'  File "/a/sglang/srt/x.py", line 7, in f\n    raise X(\n{error}\n\n' + SIGQUIT
    )


def found(text: str) -> Diagnosis:
    return diagnose([text.encode()], ())


def root_text(d: Diagnosis) -> str | None:
    return d.root.text if d.root else None


# A name that no cause has wins over nothing: a local error that comes second must not win.
FIRST = failing("RuntimeError: NCCL error: unhandled system error", "TP1")
SECOND = failing("ValueError: second")


@pytest.mark.parametrize(
    "again",
    [
        ARGS + BEGIN,
        BEGIN,  # no arguments: the head of the second start is missing, too
        "node7 systemd[1]: sglang.service: Scheduled restart job, restart counter is at 1.\n"
        + BEGIN,
        "Container image Copyright (c) 2016-2025, NVIDIA CORPORATION & AFFILIATES. All rights reserved.\n",
        "/a/sglang/launch_server.py:71: UserWarning: 'python -m sglang.launch_server' is old\n",
        "E1129 agent.py:1] failed (exitcode: 1) local_rank: 0; Restarting worker group\n",
        "Restarting in 5 seconds\n",
    ],
)
def test_the_first_start_counts_also_with_the_head_cut_off(again: str) -> None:
    for head in (ARGS + BEGIN + LOADS, BEGIN + LOADS, LOADS):
        d = found(head + FIRST + again + SECOND)
        assert root_text(d) == "RuntimeError: NCCL error: unhandled system error"
        assert (d.ranks, d.starts, d.came_up) == (("TP1",), 2, None)


def test_a_later_start_that_came_up_is_told() -> None:
    text = ARGS + BEGIN + FIRST + ARGS + BEGIN + LOADS + READY
    d = found(text)
    assert (d.outcome, d.starts) == ("failed", 2)
    assert d.came_up == text.count("\n")


def test_every_later_start_is_counted() -> None:
    d = found((ARGS + BEGIN + FIRST) * 4)
    assert (d.starts, d.came_up) == (4, None)
    assert d.root is not None
    assert d.root.line < 10


def test_a_start_that_was_stopped_is_not_the_one_that_failed() -> None:
    d = found(ARGS + BEGIN + READY + STOPPED + ARGS + BEGIN + SECOND)
    assert (d.outcome, root_text(d), d.starts) == ("failed", "ValueError: second", 1)


def test_vllm_starts_again_in_its_own_words() -> None:
    head = "(APIServer pid={}) INFO 02-20 06:00:12 [api_server.py:1351] vLLM API server version 0.14.1\n"
    worker = "(Worker_TP1 pid=9) Traceback (most recent call last):\n" \
        '(Worker_TP1 pid=9)   File "/x/vllm/w.py", line 7, in f\n(Worker_TP1 pid=9) {}\n'  # fmt: skip
    died = (
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above.\n"
    )
    first = head.format(1) + worker.format("RuntimeError: NCCL error: system") + died
    d = found(first + head.format(2) + worker.format("ValueError: second") + died)
    assert root_text(d) == "RuntimeError: NCCL error: system"


@pytest.mark.parametrize("prefix", ["[pod/sglang-{}/main] ", "sglang-{}  | ", "{}: "])
def test_two_nodes_in_one_log_are_no_restart(prefix: str) -> None:
    def of(node: int, text: str) -> str:
        return "".join(prefix.format(node) + line + "\n" for line in text.splitlines())

    text = of(0, ARGS) + of(0, BEGIN + FIRST)
    d = found(text + of(1, ARGS.replace("'tp_size': 2", "'tp_size': 2, 'node_rank': 1") + SECOND))
    assert (root_text(d), d.starts) == ("ValueError: second", 1)


def test_two_nodes_without_labels_are_no_restart() -> None:
    nodes = [ARGS.replace("}", f", 'node_rank': {n}}}") for n in (0, 1)]
    d = found(nodes[0] + nodes[1] + BEGIN + LOADS + FIRST + SECOND)
    assert (root_text(d), d.starts) == ("ValueError: second", 1)


def test_a_draft_model_that_is_set_up_is_no_restart() -> None:
    d = found(ARGS + BEGIN + LOADS + BEGIN + LOADS + SECOND)
    assert (d.starts, d.phase) == (1, "draft-worker-init")


def test_another_source_goes_on_after_one_started_again() -> None:
    def of(node: int, text: str) -> str:
        return "".join(f"sglang-{node}  | {line}\n" for line in text.splitlines())

    text = of(0, ARGS + BEGIN) + of(1, "waiting for the first node: No such file") + of(0, FIRST)
    d = found(text + of(0, ARGS + BEGIN) + of(1, SECOND) + of(0, READY))
    assert (root_text(d), d.starts) == ("ValueError: second", 2)
    assert d.came_up is not None


def test_a_source_that_came_up_says_nothing_about_another_that_failed() -> None:
    def of(node: int, text: str) -> str:
        return "".join(f"sglang-{node}  | {line}\n" for line in text.splitlines())

    d = found(of(0, ARGS + BEGIN) + of(1, ARGS + BEGIN + SECOND) + of(0, READY))
    assert (d.outcome, root_text(d)) == ("failed", "ValueError: second")


def test_a_server_that_is_ready_after_a_scheduler_died_is_another_start() -> None:
    text = ARGS + BEGIN + SECOND + "[2026-07-01 12:01:00 TP0] Load weight end. type=X\n" + READY
    d = found(text)
    assert (d.outcome, root_text(d)) == ("failed", "ValueError: second")
    assert d.came_up == text.count("\n")


def test_what_comes_before_the_arguments_already_belongs_to_the_next_start() -> None:
    complaint = "ibgda.cpp:3626: NULL value neither nv_peer_mem, or nvidia_peermem detected.\n"
    died = "RuntimeError: Rank 0 scheduler died during initialization (exit code: -6).\n"
    again = "[2026-07-01 12:02:00] Attention backend not explicitly specified. Use fa3 backend by default.\n"
    d = found((ARGS + BEGIN + complaint + died + again) * 2)
    assert root_text(d) == complaint.strip()


def test_a_stopped_server_that_starts_again_with_another_port_is_a_new_start() -> None:
    d = found(ARGS + BEGIN + READY + STOPPED + ARGS.replace("30000", "40000") + BEGIN + SECOND)
    assert (d.outcome, d.ranks_total, d.phase) == ("failed", 2, "dist-init")


def test_a_rank_that_begins_after_another_failed_is_no_restart() -> None:
    backend = "[2026-07-01 12:00:05 {}] Attention backend not set. Use flashinfer backend.\n"
    text = "".join(backend.format(rank) + failing("ValueError: x", rank) for rank in ("TP2", "TP3"))
    d = found(text)
    assert (d.starts, d.ranks) == (1, ("all",))
    again = found(text + backend.format("TP2") + failing("ValueError: y", "TP2"))
    assert again.starts == 2


def of_no_module(error: str) -> str:
    return f'Traceback (most recent call last):\n  File "/a/b.py", line 7, in wait\n    raise X\n{error}\n'


AGAIN = "/a/sglang/launch_server.py:71: UserWarning: still supported\n" + ARGS + BEGIN + LOADS


def test_of_a_log_without_its_head_the_first_start_counts_too() -> None:
    """Nothing shows that a process ended but that another start begins, later than any can."""
    one, two = of_no_module("TimeoutError: first"), of_no_module("TimeoutError: second")
    d = found(BEGIN + LOADS + one + AGAIN + two)
    assert root_text(d) == "TimeoutError: first"
    assert d.starts == 2
    assert root_text(found(BEGIN + LOADS + AGAIN + two)) == "TimeoutError: second"


def test_a_traceback_whose_head_is_cut_off_may_show_that_its_program_ended() -> None:
    cut = '  File "/a/sglang/launch_server.py", line 7, in <module>\n    run()\n'
    whole = '  File "<frozen runpy>", line 9, in _run_module_as_main\n' + cut
    tail = '  File "/a/sglang/srt/y.py", line 7, in run\n    raise X\nValueError: '
    log = f"{cut}{tail}first\n/a/sglang/launch_server.py:71: UserWarning: x\nTraceback (most recent call last):\n"
    log += f"{whole}{tail}second\n"
    assert root_text(found(log)) == "ValueError: first"
    frame = '  File "/a/runpy.py", line 9, in _run_code\n    exec(code)\n'
    assert root_text(found(frame + log)) == "ValueError: first"


def test_a_start_that_an_early_line_tells_is_counted_once() -> None:
    again = "/a/sglang/launch_server.py:71: UserWarning: still supported\n" + ARGS + BEGIN
    assert found(ARGS + BEGIN + FIRST + again + SECOND).starts == 2
    assert found(ARGS + BEGIN + FIRST + again + SECOND + again + SECOND).starts == 3

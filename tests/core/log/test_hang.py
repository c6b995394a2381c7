"""A launch that stands still is told from one that is slow, stopped or dead."""

from __future__ import annotations

import pytest

from triage.core.diagnosis import Diagnosis
from triage.core.launch import Crashed
from triage.core.log.diagnose import diagnose

ARGS = "[2026-07-01 12:00:00] server_args={'model_path': '/models/x', 'tp_size': 4}\n"
BEGIN = "".join(f"[2026-07-01 12:00:01 TP{n}] Init parallel begin.\n" for n in range(4))
TERM = "[2026-07-01 {}] SIGTERM received. signum=15 frame=None. Draining requests and shutting down...\n"
WATCHDOG = "[2026-07-01 12:20:00 TP{}] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)\n"
SIGQUIT = "[2026-07-01 12:20:09] Received sigquit from a child process. It usually means the child failed.\n"


def found(text: str) -> Diagnosis:
    return diagnose([text.encode()], ())


def ends(*ranks: int) -> str:
    return "".join(f"[2026-07-01 12:00:05 TP{n}] Init parallel ends. elapsed=4 s\n" for n in ranks)


def test_the_ranks_that_lag_are_named_however_the_library_labels_its_lines() -> None:
    nccl = "node0:7:9 [2] NCCL INFO Channel 00/16 : 0 1 2 3\n[rank2]: NCCL WARN slow\n"
    d = found(ARGS + BEGIN + nccl + ends(0, 1, 3))
    assert (d.outcome, d.ranks, d.confidence) == ("hung", ("TP2",), "low")


def test_ranks_that_stand_at_one_place_are_all() -> None:
    d = found(ARGS + BEGIN)
    assert (d.outcome, d.ranks, d.phase) == ("hung", ("all",), "dist-init")


@pytest.mark.parametrize(
    ("at", "outcome"),
    [("12:01:00", "interrupted"), ("12:09:00", "interrupted"), ("12:11:00", "hung")],
)
def test_a_stop_after_a_long_silence_means_that_nothing_happened(at: str, outcome: str) -> None:
    assert found(ARGS + BEGIN + TERM.format(at)).outcome == outcome


def test_loading_may_take_longer() -> None:
    text = ARGS + BEGIN + ends(0, 1, 2, 3)
    assert found(text + TERM.format("12:20:00")).outcome == "interrupted"
    assert found(text + TERM.format("12:50:00")).outcome == "hung"


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd: *** JOB 7 ON node0 CANCELLED AT 2026-07-01T12:05:00 DUE TO TIME LIMIT ***",
        "timeout: sending signal TERM to command 'python'",
        "sglang.service: start operation timed out. Terminating.",
    ],
)
def test_an_outer_time_out_is_a_hang(line: str) -> None:
    d = found(ARGS + BEGIN + line + "\n")
    assert (d.outcome, d.phase) == ("hung", "dist-init")


def test_the_exit_code_of_timeout_is_a_hang_too() -> None:
    d = diagnose([(ARGS + BEGIN).encode()], (), outcome=Crashed(exit_code=124))
    assert d.outcome == "hung"
    failed = "[2026-07-01 12:00:05 TP0] Scheduler hit an exception: Traceback (most recent call last):\n" \
        '  File "/a.py", line 7, in f\n    x()\nValueError: x\n'  # fmt: skip
    d = diagnose([(ARGS + BEGIN + failed).encode()], (), outcome=Crashed(exit_code=124))
    assert d.outcome == "failed"


def test_an_engines_watchdog_tells_a_hang_though_it_then_kills() -> None:
    text = ARGS + BEGIN + ends(0, 1, 2) + "".join(map(WATCHDOG.format, range(4))) + SIGQUIT
    d = found(text)
    assert (d.outcome, d.ranks) == ("hung", ("TP3",))
    assert d.root is not None
    assert "watchdog timeout" in d.root.text


def test_an_exception_of_one_rank_outranks_the_watchdogs_of_the_others() -> None:
    failed = "[2026-07-01 12:00:05 TP3] Scheduler hit an exception: Traceback (most recent call last):\n" \
        '  File "/a.py", line 7, in f\n    x()\nValueError: x\n'  # fmt: skip
    d = found(ARGS + BEGIN + failed + "".join(map(WATCHDOG.format, range(3))) + SIGQUIT)
    assert (d.outcome, d.ranks) == ("failed", ("TP3",))
    assert len(d.cascade) == 4


def test_a_bar_that_moves_is_the_last_that_was_seen() -> None:
    bars = "".join(
        f"Multi-thread loading shards:  {n}% Completed | {n}/100 [00:0{n}<01:00]\n"
        for n in range(1, 6)
    )
    load = "".join(
        f"[2026-07-01 12:00:06 TP{n}] Load weight begin. avail mem=1 GB\n" for n in range(4)
    )
    text = ARGS + BEGIN + ends(0, 1, 2, 3) + load + bars
    d = found(text)
    assert (d.outcome, d.phase, d.title) == ("hung", "weight-load", "hung, or the log was cut")
    assert d.root is not None
    assert d.root.line == text.count("\n")


def two(*ranks: int) -> str:
    """Two ranks, of which these have done their part of the set-up."""
    args = "[2026-07-01 12:00:00] server_args={'model_path': '/models/x', 'tp_size': 2}\n"
    begin = "".join(f"[2026-07-01 12:00:01 TP{n}] Init parallel begin.\n" for n in range(2))
    return args + begin + ends(*ranks)


def test_of_two_ranks_the_one_without_the_next_landmark_is_named() -> None:
    d = found(two(0))
    assert (d.outcome, d.phase, d.ranks, d.confidence) == ("hung", "dist-init", ("TP1",), "low")
    assert d.root is not None
    assert (d.root.line, d.root.rank) == (3, "TP1")
    assert d.title.endswith("TP1 has not come to what TP0 prints (line 4)")


def test_of_two_ranks_a_line_that_the_first_prints_for_both_tells_nothing() -> None:
    said = "[2026-07-01 12:00:09 TP0] max_total_num_tokens=9000, context_len=4096\n"
    d = found(two(0, 1) + said)
    assert d.phase == "scheduler-init"
    assert "has not come to" not in d.title


def test_of_three_ranks_one_may_be_behind() -> None:
    text = two(0, 1).replace("'tp_size': 2", "'tp_size': 3")
    third = "[2026-07-01 12:00:01 TP2] Init parallel begin.\n"
    d = found(text.replace("[2026-07-01 12:00:05 TP0]", third + "[2026-07-01 12:00:05 TP0]"))
    assert (d.phase, d.ranks) == ("dist-init", ("TP2",))

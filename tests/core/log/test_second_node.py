"""The log of a node that never says that the server is ready."""

from triage.core.diagnosis import Diagnosis
from triage.core.log.diagnose import diagnose
from triage.knowledge import load_causes

DUMP = "[2026-07-01 12:00:00] server_args=ServerArgs(tp_size=4, nnodes=2, node_rank={rank})\n"
RANKS = "".join(
    f"[2026-07-01 12:0{minute}:00 TP{rank}] {text}\n"
    for minute, text in (
        (1, "Init torch distributed begin."),
        (2, "Load weight begin. avail mem=77.18 GB"),
        (3, "max_total_num_tokens=412331, chunked_prefill_size=8192"),
    )
    for rank in (2, 3)
)
UP = "[2026-07-01 12:04:00] Dummy health check server started in background thread at 0.0.0.0:30000\n"


def read(log: str) -> Diagnosis:
    return diagnose([log.encode()], load_causes())


def test_a_node_whose_ranks_are_up_is_healthy_and_says_what_it_cannot_tell() -> None:
    told = read(DUMP.format(rank=1) + RANKS + UP)
    assert (told.outcome, told.phase) == ("healthy", "warmup-request")
    assert "node 0" in told.title


def test_a_node_whose_ranks_are_not_up_still_hangs() -> None:
    assert read(DUMP.format(rank=1) + RANKS).outcome == "hung"


def test_node_0_beside_it_in_the_log_has_to_be_ready_itself() -> None:
    assert read(DUMP.format(rank=0) + DUMP.format(rank=1) + RANKS + UP).outcome == "hung"


def test_a_rank_that_fails_after_that_is_a_failure() -> None:
    failed = (
        "[2026-07-01 12:05:00 TP2] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/sglang/srt/managers/scheduler.py", line 1, in run_batch\n'
        "    raise RuntimeError\n"
        "RuntimeError: tile plan is odd\n"
    )
    told = read(DUMP.format(rank=1) + RANKS + UP + failed)
    assert told.outcome == "failed"

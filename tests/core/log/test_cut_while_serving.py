"""The rest of a log whose start was cut away is told from a start that stands still."""

from __future__ import annotations

import pytest

from triage.core.diagnosis import Diagnosis
from triage.core.log.diagnose import diagnose

AT = "[2026-07-01 12:00:0{} TP0] "
PREFILL = (
    AT + "Prefill batch, #new-seq: 1, #new-token: 512, #cached-token: 0, token usage: 0.31, "
    "#running-req: {}, #queue-req: 0, cuda graph: False, input throughput (token/s): 900.11\n"
)
ANSWER = '[2026-07-01 12:00:04] INFO:     10.0.3.7:4002 - "POST /generate HTTP/1.1" 200 OK\n'
TERM = "[2026-07-01 12:50:00] SIGTERM received. signum=15 frame=None. Draining requests\n"
BEGIN = "[2026-07-01 12:00:00 TP0] Init parallel begin.\n"


def found(text: str) -> Diagnosis:
    return diagnose([text.encode()], ())


@pytest.mark.parametrize("wrapper", ["", "server-1  | ", "Jul 01 12:00:01 node0 sglang[41]: "])
def test_a_batch_beside_running_requests_is_of_a_server_that_came_up(wrapper: str) -> None:
    lines = PREFILL.format(1, 0) + PREFILL.format(2, 12) + ANSWER
    d = found("".join(wrapper + line for line in lines.splitlines(keepends=True)))
    assert (d.outcome, d.phase, d.cause, d.title) == ("healthy", "serving", None, "")


def test_it_is_healthy_too_when_it_was_stopped_later() -> None:
    assert found(PREFILL.format(1, 12) + TERM).outcome == "healthy"


def test_a_batch_that_has_the_server_for_itself_may_be_of_a_warm_up() -> None:
    assert found(PREFILL.format(1, 0) + PREFILL.format(2, 0)).outcome == "hung"


def test_a_start_that_is_in_the_log_has_to_end_with_its_ready_line() -> None:
    assert found(BEGIN + PREFILL.format(1, 0) + PREFILL.format(2, 1)).outcome == "hung"


def test_an_exception_while_serving_counts() -> None:
    raised = (
        "[2026-07-01 12:00:05 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/sglang/srt/managers/scheduler.py", line 9, in run_scheduler_process\n'
        "    scheduler.event_loop_overlap()\nKeyError: 'slot'\n"
    )
    assert found(PREFILL.format(1, 12) + raised).outcome == "failed"

"""What a server that is up prints of others' words is no failure while it goes on to answer."""

from __future__ import annotations

import pytest

from triage.core.diagnosis import Diagnosis
from triage.core.log.diagnose import diagnose
from triage.knowledge import load_causes

AT = "[2026-07-01 12:{:02}:{:02}{}] "
ARGS = AT.format(0, 0, "") + "server_args={'model_path': '/models/x', 'tp_size': 2}\n"
READY = AT.format(0, 5, "") + "The server is fired up and ready to roll!\n"
CHAT = (
    "Traceback (most recent call last):\n"
    '  File "/home/me/train.py", line 8, in <module>\n'
    "    loss.backward()\n"
    "RuntimeError: CUDA error: an illegal memory access was encountered\n"
)
NVML = "Failed to initialize NVML: Driver/library version mismatch\n"
FAULT = (
    AT.format(9, 0, " TP1") + "Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/opt/sglang/srt/managers/scheduler.py", line 9, in run_scheduler_process\n'
    "    scheduler.event_loop_overlap()\nKeyError: 'slot'\n"
)
DIED = (
    AT.format(9, 2, "")
    + "Received sigquit from a child process. It usually means the child failed.\n"
)
CRASH = (
    "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f3d (most recent call first):\n"
    '  File "/opt/sglang/srt/managers/scheduler.py", line 9 in run_scheduler_process\n\n'
)
POST = 'INFO:     10.0.3.7:4002 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
VLLM = (
    "INFO 07-01 12:08:00 [loggers.py:127] Engine 000: Avg prompt throughput: 3.4 tokens/s, "
    "Avg generation throughput: {} tokens/s, Running: 1 reqs, Waiting: 0 reqs\n"
)


def batch(minute: int, second: int = 0) -> str:
    return (
        AT.format(minute, second, " TP0")
        + "Decode batch, #running-req: 3, #token: 90, token usage: 0.31, cuda graph: True, "
        "gen throughput (token/s): 91.2, #queue-req: 0\n"
    )


def found(*lines: str) -> Diagnosis:
    return diagnose(["".join((ARGS, READY, *lines)).encode()], load_causes())


@pytest.mark.parametrize("words", [CHAT, NVML, CHAT + NVML, CRASH])
@pytest.mark.parametrize("answer", [batch(7), POST, AT.format(7, 0, "") + POST, VLLM.format(5.9)])
def test_words_that_the_server_survives_are_no_failure(words: str, answer: str) -> None:
    assert found(batch(1), words, answer).outcome == "healthy"


def test_words_of_a_death_take_longer_to_be_disproved() -> None:
    said = DIED.partition("] ")[2]
    assert found(batch(1), said, batch(7)).outcome == "failed"
    assert found(batch(1), said, batch(7), batch(7, 50)).outcome == "failed"
    assert found(batch(1), said, batch(7), batch(8)).outcome == "healthy"
    assert (
        found(said, VLLM.format(5.9), VLLM.format(2.1).replace(":08:", ":09:")).outcome == "healthy"
    )


def test_what_was_survived_once_is_survived_again() -> None:
    assert found(NVML, batch(2), batch(4), NVML).outcome == "healthy"
    assert found(NVML, batch(2), batch(4), NVML, DIED).outcome == "failed"


@pytest.mark.parametrize("words", [CHAT, NVML, CRASH])
@pytest.mark.parametrize(
    "no_answer",
    ["", 'INFO:     10.0.3.7:4002 - "POST /generate HTTP/1.1" 503 Service Unavailable\n',
     'INFO:     10.0.3.7:4002 - "GET /health HTTP/1.1" 200 OK\n', VLLM.format("0.0")],
)  # fmt: skip
def test_without_an_answer_they_are(words: str, no_answer: str) -> None:
    assert found(batch(1), words, no_answer).outcome == "failed"


@pytest.mark.parametrize("words", [CHAT, NVML])
def test_a_crash_that_comes_later_is_the_root_and_not_the_words(words: str) -> None:
    d = found(batch(1), words, batch(2), batch(3), batch(8), FAULT, DIED)
    assert (d.outcome, d.cause) == ("failed", None)
    assert d.root is not None
    assert d.root.text == "KeyError: 'slot'"


@pytest.mark.parametrize("end", [DIED, ""])
def test_a_last_batch_of_another_rank_clears_no_exception_of_the_engine(end: str) -> None:
    d = found(batch(1), FAULT, batch(9, 1), end)
    assert d.outcome == "failed"
    assert d.root is not None
    assert d.root.text == "KeyError: 'slot'"


def test_a_last_batch_of_another_rank_clears_no_crash_that_a_death_follows() -> None:
    d = found(batch(1), CRASH, batch(9, 1), DIED)
    assert d.outcome == "failed"
    assert d.root is not None
    assert "Segmentation fault" in d.root.text


def test_a_death_that_no_line_explains_is_a_failure() -> None:
    d = found(batch(1), CHAT, batch(2), batch(4), DIED)
    assert (d.outcome, d.cause, d.root) == ("failed", None, None)


def wrapped(name: str, *lines: str) -> str:
    return "".join(f"{name:16} | {one}\n" for text in lines for one in text.splitlines())


def beside(*lines: str) -> Diagnosis:
    start = wrapped("server-1", ARGS, READY)
    return diagnose([(start + "".join(lines)).encode()], load_causes())


@pytest.mark.parametrize("words", [NVML, CHAT, "panic: NVML is not loaded\n"])
def test_what_a_program_beside_the_server_says_is_no_failure_of_it(words: str) -> None:
    exporter = wrapped("dcgm-exporter-1", words)
    assert beside(exporter).outcome == "healthy"
    assert beside(exporter, "dcgm-exporter-1 exited with code 2\n").outcome == "healthy"
    before = wrapped("server-1", ARGS) + exporter + wrapped("server-1", READY)
    assert diagnose([before.encode()], load_causes()).outcome == "healthy"


def test_the_end_of_a_container_that_said_nothing_is_none_of_the_server() -> None:
    """Only the engine's container, with its project's name or without, is the server."""
    assert beside("redis-1 exited with code 137\n").outcome == "healthy"
    assert beside("llm_server-1 exited with code 137\n").outcome == "failed"


def test_the_end_of_the_servers_own_container_is_a_failure() -> None:
    d = beside(wrapped("dcgm-exporter-1", NVML), "server-1 exited with code 137\n")
    assert (d.outcome, d.cause) == ("failed", None)


def test_a_second_engine_that_is_refused_is_a_failure() -> None:
    refused = "launch_server.py: error: unrecognized arguments: --tpp 2\n"
    d = beside(wrapped("decode-1", refused), "decode-1 exited with code 2\n")
    assert d.outcome == "failed"
    assert d.root is not None
    assert "unrecognized" in d.root.text


def test_before_it_is_up_another_programs_line_counts() -> None:
    text = wrapped("server-1", ARGS) + wrapped("dcgm-exporter-1", NVML)
    assert diagnose([text.encode()], load_causes()).cause == "driver-library-mismatch"


def test_batches_of_a_second_server_clear_no_exception_of_the_first() -> None:
    d = found(batch(1), FAULT, DIED, *(batch(m) for m in range(10, 14)))
    assert d.root is not None
    assert (d.outcome, d.root.text) == ("failed", "KeyError: 'slot'")


@pytest.mark.parametrize("end", [CRASH + "Aborted (core dumped)\n", FAULT + DIED])
def test_batches_of_another_container_clear_no_death_in_this_one(end: str) -> None:
    start = wrapped("server-2", ARGS, READY)
    other = wrapped("server-2", *(batch(m) for m in range(10, 14)))
    assert beside(start, wrapped("server-1", batch(1), batch(9), end), other).outcome == "failed"
    again = wrapped("server-1", *(batch(m) for m in range(10, 14)))
    words = wrapped("server-1", batch(1), CRASH)
    assert beside(start, words, other, again).outcome == "healthy"


def test_a_container_that_ends_failed_although_another_serves_on() -> None:
    other = [wrapped("server-2", ARGS, READY, batch(6)), "server-1 exited with code 137\n"]
    d = beside(*other, wrapped("server-2", *(batch(m) for m in range(7, 14))))
    assert d.outcome == "failed"

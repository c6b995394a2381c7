"""A traceback of which the end is missing says less than a line that says what failed."""

from __future__ import annotations

from itertools import permutations

import pytest

from triage.core.diagnosis import Diagnosis
from triage.core.log.diagnose import diagnose
from triage.knowledge.stored import load_causes

ARGS = "[2026-07-01 12:00:00] server_args=ServerArgs(model_path='/m', tp_size=2)\n" + "".join(
    f"[2026-07-01 12:00:10 TP{n}] Load weight begin. avail mem=140.00 GB\n" for n in (0, 1)
)
FRAMES = (
    '  File "/opt/sglang/srt/managers/scheduler.py", line 3004, in run_scheduler_process\n'
    "    scheduler = Scheduler(server_args, port_args, gpu_id, tp_rank, pp_rank, dp_rank)\n"
)
HEAD = "[2026-07-01 12:00:41 TP{}] Scheduler hit an exception: Traceback (most recent call last):\n"
BROKEN = HEAD.format(1) + FRAMES
SAID = "ValueError: the gizmo of layer 3 has no flux"
STATED = HEAD.format(0) + FRAMES + SAID + "\n\n"
QUIT = "[2026-07-01 12:00:42] Received sigquit from a child process.\n"
CORE = "ERROR 05-06 01:55:26 [core.py:400] "
MAIN = (
    "Process EngineCore_0:\nTraceback (most recent call last):\n"
    '  File "/usr/lib/python3.12/multiprocessing/process.py", line 314, in _bootstrap\n'
    "    self.run()\n"
)
VLLM = "INFO 05-06 01:55:20 [api_server.py:1289] vLLM API server version 0.9.0.1\n"
WORKER = "ERROR 05-06 01:55:30 [multiproc_executor.py:135] Worker proc VllmWorker-0 "
DIED = WORKER + "died unexpectedly, shutting down executor.\n"


def found(text: str) -> Diagnosis:
    return diagnose([text.encode()], load_causes())


def root(text: str) -> str:
    d = found(text)
    return d.root.text if d.root else ""


@pytest.mark.parametrize("order", list(permutations((BROKEN, STATED, QUIT))))
def test_the_exception_that_is_stated_leads_wherever_another_breaks_off(order: list[str]) -> None:
    assert root(ARGS + "".join(order)) == SAID


@pytest.mark.parametrize(
    "log",
    [
        f"{VLLM}{CORE}EngineCore failed to start.\n{CORE}{SAID}\n{MAIN}",
        f"{VLLM}(VllmWorker rank=1 pid=7) {CORE}{SAID}\n{MAIN}{DIED}",
        f"    self._init_executor()\n{FRAMES}{SAID}\n{MAIN}",  # both ends of the log are cut
        f"{VLLM}{CORE}EngineCore failed to start.\n{CORE}{SAID}\n{MAIN}Val",  # cut within a name
        f"{FRAMES}[2026-07-01 12:00:40] Loading.\n{STATED}{QUIT}",  # of one the frames are left
    ],
)
def test_an_exception_without_its_head_leads_too(log: str) -> None:
    assert root(log) == SAID


def test_alone_it_is_the_root_and_the_confidence_is_low() -> None:
    d = found(ARGS + BROKEN + QUIT)
    assert d.outcome == "failed"
    assert d.root is not None
    assert (d.root.line, d.root.rank, d.confidence) == (4, "TP1", "low")


def test_it_says_more_than_the_death_that_follows_from_it() -> None:
    d = found(ARGS + QUIT + BROKEN)
    assert d.root is not None
    assert d.root.line == 5


def test_the_line_that_says_who_died_is_the_root_where_there_is_nothing_else() -> None:
    d = found(VLLM + DIED)
    assert (d.outcome, d.cause, d.fingerprint, d.confidence) == ("failed", None, None, "low")
    assert root(VLLM + DIED).startswith("Worker proc VllmWorker-0 died")
    assert root(f"{VLLM}{DIED}{CORE}EngineCore failed to start.\n{CORE}{SAID}\n") == SAID

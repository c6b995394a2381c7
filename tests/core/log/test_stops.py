"""A launch of which nothing failed: who ended it is said, and it is no crash."""

from __future__ import annotations

import pytest

from triage.core.diagnosis import Diagnosis
from triage.core.log.diagnose import diagnose
from triage.core.log.live import Live
from triage.knowledge.stored import load_causes

ARGS = "[2026-07-01 12:00:00] server_args={'model_path': '/models/x', 'tp_size': 4}\n"
BEGIN = "".join(f"[2026-07-01 12:00:01 TP{n}] Init parallel begin.\n" for n in range(4))
LOAD = "".join(f"[2026-07-01 12:00:09 TP{n}] Load weight begin. avail mem=1\n" for n in range(4))
SLURM = "slurmstepd: error: *** JOB 7 ON gpu-07 CANCELLED AT 2026-07-01T12:00:50 DUE TO {} ***"


def found(*lines: str) -> Diagnosis:
    text = ARGS + BEGIN + LOAD + "".join(f"{line}\n" for line in lines)
    return diagnose([text.encode()], load_causes())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (SLURM.format("TIME LIMIT"), "Slurm ended the job at its time limit"),
        (SLURM.format("PREEMPTION"), "took the nodes back"),
        (SLURM.format("JOB REQUEUE"), "took the nodes back"),
        (SLURM.format("NODE FAILURE"), "a node failed"),
        ("slurmstepd: error: *** STEP 7.0 ON n CANCELLED AT 2026-07-01T12:00:50 ***", "cancelled"),
        ("=>> PBS: job killed: walltime 3602 exceeded limit 3600", "at its time limit"),
        ("TERM_RUNLIMIT: job killed after reaching LSF run time limit.", "at its time limit"),
        ("srun: error: gpu-07: task 0: Terminated", "SIGTERM"),
        ("/opt/run.sh: line 12:   345 Terminated              python -m sglang.launch_server", "SIGTERM"),
        ("sglang-1 exited with code 143", "SIGTERM"),
        ("sglang-1 exited with code 130", "Ctrl-C"),
        ("sglang.service: Main process exited, code=killed, status=15/TERM", "SIGTERM"),
        ("Jul 01 12:00:50 n systemd[1]: Stopping sglang.service - SGLang...", "service manager"),
        ("Normal  Killing  1s  kubelet  Stopping container server", "container engine"),
        ("Preempted by pod 6d1c on node gpu-07", "took the machine back"),
        ("Pod was terminated in response to imminent node shutdown.", "Kubernetes"),
        ("[2026-07-01 12:00:50] SIGTERM received. signum=15 frame=None. Draining requests", "SIGTERM"),
        ("timeout: sending signal TERM to command 'python'", "time-out around the server"),
    ],
)  # fmt: skip
def test_who_stopped_a_launch_that_was_well_is_named(line: str, said: str) -> None:
    d = found(line)
    assert (d.outcome, d.cause, d.root, d.phase) == ("interrupted", None, None, "model-construct")
    assert said in d.title
    assert "(line 10)" in d.title


def test_schedulers_that_a_signal_ended_did_not_fail() -> None:
    d = found(
        "[2026-07-01 12:00:50] Subprocess scheduler_0 (pid=7) crashed with exit code -15. Trig",
        "[2026-07-01 12:00:50] Received sigquit from a child process. It usually means the child",
    )
    assert d.outcome == "interrupted"
    assert "SIGTERM" in d.title


def test_a_kill_is_still_a_death() -> None:
    killed = "[2026-07-01 12:00:50] Subprocess scheduler_0 (pid=7) crashed with exit code -9. Trig"
    assert found(killed).outcome == "failed"
    terminated = "srun: error: gpu-07: task 1: Terminated"
    assert (
        found("srun: error: gpu-07: task 0: Exited with exit code 1", terminated).outcome
        == "failed"
    )


def test_a_reason_outranks_who_stopped_it_then() -> None:
    d = found(
        "[2026-07-01 12:00:40 TP1] Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/a.py", line 7, in f',
        "    x()",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "slurmstepd: error: *** STEP 7.0 ON n CANCELLED AT 2026-07-01T12:00:50 ***",
    )
    assert (d.outcome, d.ranks) == ("failed", ("TP1",))


def test_a_kill_for_memory_is_named_though_slurm_then_cancels() -> None:
    d = found(
        "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.",
        "srun: error: gpu-07: task 0: Out Of Memory",
        "slurmstepd: error: *** STEP 7.0 ON n CANCELLED AT 2026-07-01T12:00:50 ***",
    )  # fmt: skip
    assert (d.outcome, d.cause) == ("failed", "host-oom-killed")


def test_a_readiness_probe_ends_nothing() -> None:
    refused = "Readiness probe failed: Get http://10.0.0.7:30000/health: connection refused"
    d = found(refused, refused)
    assert (d.outcome, d.cause) == ("hung", None)


def test_a_long_silence_before_the_limit_is_a_hang_and_says_both() -> None:
    d = diagnose(
        [(ARGS + BEGIN + SLURM.format("TIME LIMIT").replace("12:00:50", "16:00:01")).encode()],
        load_causes(),
    )
    assert d.outcome == "hung"
    d = found(
        "[2026-07-01 13:59:00] SIGTERM received. signum=15 frame=None. Draining requests and shut"
    )
    assert d.outcome == "hung"
    assert "SIGTERM" in d.title


def test_memory_pressure_of_a_serving_engine_stops_nothing() -> None:
    up = "[2026-07-01 12:01:00] The server is fired up and ready to roll!"
    d = found(
        up, "WARNING 07-01 12:02:00 scheduler.py:1] Sequence group 7 is preempted by RECOMPUTE"
    )
    assert d.outcome == "healthy"


def test_the_time_of_a_stop_may_stand_in_the_next_line() -> None:
    quiet = "sglang-1 exited with code 143"
    late = "2026-07-01T18:00:00.000000000Z sglang-1 exited with code 143"
    assert found(quiet).outcome == "interrupted"
    assert found(quiet, late).outcome == "hung"


HELPERS = (
    "start.sh: line 12:   345 Terminated              nvidia-smi dmon > gpu.log",
    "init-1 exited with code 143",
)


@pytest.mark.parametrize("helper", HELPERS)
def test_a_helper_that_was_ended_hides_no_failure(helper: str) -> None:
    death = "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9)."
    assert found(helper, death).outcome == "failed"


@pytest.mark.parametrize("helper", HELPERS)
def test_a_helper_that_was_ended_does_not_blind_who_watches(helper: str) -> None:
    live = Live(())
    exception = (
        "[2026-07-01 12:00:51 TP0] Scheduler hit an exception: Traceback (most recent call last):"
    )
    live.feed(f"{ARGS}{BEGIN}{helper}\n".encode())
    assert live.fatal_line == 0
    live.feed(f"{exception}\n".encode())
    assert live.fatal_line == 7

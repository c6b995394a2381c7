"""What others tell of a launch's end names a cause where its own log cannot."""

from __future__ import annotations

import pytest

from triage.core.diagnosis import Diagnosis
from triage.core.launch import Crashed
from triage.session.evidence import in_its_light
from triage.session.logs import classify_text

GOING = "[2026-07-01 12:00:00 TP0] Load weight begin. avail mem=270.00 GB\n"


def with_said(diagnosis: Diagnosis, said: tuple[str, ...]) -> Diagnosis:
    return in_its_light(diagnosis, (), None, said)


def killed(text: str = GOING) -> Diagnosis:
    return classify_text(text, source="server.log", outcome=Crashed(exit_code=-9))


@pytest.mark.parametrize(
    "line",
    [
        "/sys/fs/cgroup/user.slice/memory.events: oom_kill 1",
        "UNIT: A process of this unit has been killed by the OOM killer.",
        "OOMKilled: True",
        "JobState: OUT_OF_MEMORY",
    ],
)
def test_a_kill_for_memory_is_a_cause_whoever_tells_it(line: str) -> None:
    told = with_said(killed(), ("ExitCode: 137", line))
    assert (told.cause, told.confidence) == ("host-oom-killed", "medium")
    assert told.outside == (f"told of its end: {line}",)
    assert told.phase == "model-construct"


def test_a_sigkill_alone_is_none() -> None:
    said = ("control group /sys/fs/cgroup/triage-1: ended by cgroup.kill", "ExitCode: 137")
    assert with_said(killed(), said).cause is None


def test_what_the_log_names_stays() -> None:
    log = (
        GOING
        + "[2026-07-01 12:00:01 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
    )
    log += '  File "a.py", line 1, in f\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0\n'
    named = classify_text(log, source="server.log", outcome=Crashed(exit_code=None, fatal_line=2))
    assert named.cause == "weight-oom"
    assert with_said(named, ("OOMKilled: True",)) == named

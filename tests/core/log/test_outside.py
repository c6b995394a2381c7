"""What the kernel and the ends of processes add to what a log says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triage.core.diagnosis import Diagnosis, Root
from triage.core.launch import Crashed, Exit, Hung
from triage.core.log.diagnose import diagnose
from triage.core.log.outside import end_line, first_end, named, with_outside
from triage.knowledge import load_causes

CAUSES = tuple(load_causes())
KILL = (
    "[  812.000001] Out of memory: Killed process 43 (sglang::schedul) total-vm:9kB, anon-rss:8kB"
)
GROUP = (
    "[  812.000001] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,"
    "task=sglang::schedul,pid=43,uid=0"
)
XID = "[  813.500000] NVRM: Xid (PCI:0000:1b:00): 94, pid=43, name=python, Contained memory error"
DIED = (
    "[2026-07-01 12:00:00] server_args=ServerArgs(tp_size=2)\n"
    "[2026-07-01 12:00:01 TP0] Load weight begin. avail mem=170.00 GB\n"
    "RuntimeError: Rank 1 scheduler died during initialization (exit code: -9). If exit code is -9"
    " (SIGKILL), a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check.\n"
)
MAIN = Exit(pid=41, name="python -m sglang.launch_server", exit_code=1, seconds=14.0)
TP0 = Exit(pid=42, name="sglang::scheduler_TP0", rank="TP0", exit_code=-9, seconds=14.1, by_us=True)
TP1 = Exit(pid=43, name="sglang::scheduler_TP1", rank="TP1", exit_code=-9, seconds=12.5)
EXITS = (TP1, MAIN, TP0)


def of(text: str, outcome: Crashed | Hung = Crashed(exit_code=1)) -> Diagnosis:  # noqa: B008
    return diagnose((text.encode(),), CAUSES, outcome=outcome)


def seen(diagnosis: Diagnosis, exits: tuple[Exit, ...], *kernel: str) -> Diagnosis:
    return with_outside(diagnosis, exits, kernel, CAUSES)


@pytest.mark.parametrize("line", [KILL, GROUP])
def test_a_kill_for_memory_explains_exit_code_9(line: str) -> None:
    before = of(DIED)
    assert before.cause is None
    told = seen(before, EXITS, line)
    assert (told.cause, told.confidence, told.ranks) == ("host-oom-killed", "high", ("TP1",))
    assert told.signature == "host-oom-killed"
    assert told.remedies
    assert told.root is None
    assert told.outside[0] == (
        "first to end: TP1 (process 43) by SIGKILL after 12.5 s, 1.5 s before any other"
    )
    assert told.outside[1].startswith("kernel: ")
    assert told.phase == before.phase


def test_a_kill_of_somebody_else_s_process_explains_nothing() -> None:
    other = KILL.replace("process 43", "process 977")
    told = seen(of(DIED), EXITS, other)
    assert told.cause is None
    assert not any(line.startswith("kernel") for line in told.outside)


def test_the_kill_outranks_what_those_that_waited_say() -> None:
    later = replace(
        of(DIED),
        cause="weight-load-barrier-timeout",
        root=Root(line=3, offset=0, rank="TP0", time=None, text="a barrier"),
    )
    told = seen(later, EXITS, KILL)
    assert told.cause == "host-oom-killed"
    assert [other.cause for other in told.also] == ["weight-load-barrier-timeout"]


def test_a_reason_that_came_before_the_kill_stands() -> None:
    first = Exit(pid=50, name="sglang::scheduler_TP0", rank="TP0", exit_code=1, seconds=9.0)
    reason = replace(
        of(DIED),
        cause="weight-oom",
        root=Root(line=3, offset=0, rank="TP0", time=None, text="CUDA out of memory"),
    )
    told = seen(reason, (first, *EXITS), KILL)
    assert told.cause == "weight-oom"
    assert told.also[0].cause == "host-oom-killed"


def test_two_sources_that_agree_make_it_sure() -> None:
    agreed = replace(of(DIED), cause="host-oom-killed", confidence="medium")
    assert seen(agreed, EXITS, KILL).confidence == "high"


def test_an_error_of_a_gpu_is_told_and_names_what_has_no_cause() -> None:
    told = seen(of(DIED), EXITS, XID)
    assert any("Xid" in line for line in told.outside)
    known = replace(
        of(DIED), cause="weight-oom", root=Root(line=1, offset=0, rank="TP0", time=None, text="x")
    )
    assert seen(known, EXITS, XID).cause == "weight-oom"


def test_a_hang_behind_a_kill_is_a_failure_with_a_cause() -> None:
    hung = of(DIED.splitlines()[1] + "\n", Hung(silent_s=600, limit="silent"))
    alive = replace(MAIN, exit_code=-9, by_us=True, seconds=700.0)
    told = seen(hung, (TP1, alive, TP0), KILL)
    assert (told.outcome, told.cause) == ("failed", "host-oom-killed")


def test_who_ended_first_names_a_failure_that_nothing_explains() -> None:
    segv = replace(TP1, exit_code=-11)
    silent = of(
        "[2026-07-01 12:00:01 TP0] Load weight begin. avail mem=170.00 GB\n",
        Crashed(exit_code=None),
    )
    told = seen(silent, (segv, MAIN, TP0))
    assert told.title == "TP1 (process 43) ended by SIGSEGV and no line says why"
    assert told.ranks == ("TP1",)
    assert told.fingerprint is not None
    again = seen(silent, (replace(segv, pid=77), MAIN, TP0))
    assert again.fingerprint == told.fingerprint, "another process number is the same failure"
    assert seen(silent, (TP1, MAIN, TP0)).fingerprint is None, "anybody may send SIGKILL"


def test_a_healthy_launch_needs_no_explanation() -> None:
    well = Diagnosis(source="x", outcome="healthy")
    assert seen(well, EXITS) == well
    assert seen(well, EXITS, XID).outside == (f"kernel: {XID.partition('] ')[2]}",)


def test_the_first_end_is_a_rank_before_a_helper_that_only_says_no() -> None:
    helper = Exit(pid=5, name="which", exit_code=1, seconds=1.0)
    builder = Exit(pid=6, name="cicc", exit_code=-11, seconds=2.0)
    assert first_end((helper, builder, TP1, MAIN)) == TP1
    assert first_end((helper, builder, MAIN)) == builder
    assert first_end((helper, MAIN)) is None
    assert first_end((TP0,)) is None, "we ended it"
    assert first_end((builder, TP1), victims={6}) == builder


def test_the_line_of_an_end_has_no_more_than_is_known() -> None:
    bare = Exit(pid=7, name="", exit_code=-64)
    assert end_line(bare, (bare,)) == "first to end: a process (process 7) by signal 64"


def test_the_kernel_names_processes_in_several_ways() -> None:
    assert (named(KILL), named(GROUP), named(XID)) == (43, 43, 0)
    assert named("[1.0] python[43]: segfault at 0 ip 00007 sp 00007 error 4") == 43
    assert named("[1.0] traps: python[43] trap invalid opcode ip:55 sp:7f error:0") == 43


ELSEWHERE = "the others wait for TP5 in all_reduce (torch/distributed/distributed_c10d.py:2806)"
TOGETHER = "all 8 stand in barrier (torch/distributed/distributed_c10d.py:4810), a call that each rank has to make"


@pytest.mark.parametrize(
    ("sentence", "cause"),
    [(ELSEWHERE, "hang-rank-elsewhere"), (TOGETHER, "hang-in-collective")],
)
def test_a_hang_is_named_by_where_its_ranks_stand(sentence: str, cause: str) -> None:
    hung = of(DIED.splitlines()[1] + "\n", Hung(silent_s=600, limit="silent"))
    assert hung.cause is None
    told = seen(replace(hung, standstill=("TP5 stands in read (x.py:1)", sentence)), ())
    assert (told.outcome, told.cause, told.confidence) == ("hung", cause, "medium")
    assert told.remedies
    assert told.standstill[1] == sentence, "the evidence stays"
    assert told.signature == hung.signature, "the next hang may stand elsewhere"


def test_a_kill_outranks_where_the_others_stand() -> None:
    hung = of(DIED.splitlines()[1] + "\n", Hung(silent_s=600, limit="silent"))
    told = seen(replace(hung, standstill=(ELSEWHERE,)), (TP1, TP0), KILL)
    assert (told.cause, told.signature) == ("host-oom-killed", "host-oom-killed")


def test_the_remedy_names_the_rank_that_is_elsewhere() -> None:
    hung = of(DIED.splitlines()[1] + "\n", Hung(silent_s=600, limit="silent"))
    (first, *_) = seen(replace(hung, standstill=(ELSEWHERE,)), ()).remedies
    assert "TP5" in first.say

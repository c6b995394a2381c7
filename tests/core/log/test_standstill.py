"""Where the ranks of a silent launch stand."""

from __future__ import annotations

from triage.core.log.standstill import sentences, standing

_HEAD = """== process {pid} (python), parent 1, state S, waits in futex_wait_queue
sglang::scheduler_{rank}
Process {pid}: sglang::scheduler_{rank}
Python v3.12.1 (/usr/bin/python3.12)

Thread {pid} (idle): "Watchdog"
    wait (threading.py:320)
Thread {pid} (active): "MainThread"
"""
_REDUCE = """    wait (threading.py:324)
    all_reduce (torch/distributed/distributed_c10d.py:2806)
    forward (sglang/srt/layers/linear.py:1300)
"""
_LOAD = """    read (safetensors/torch.py:40)
    load_weights (sglang/srt/models/deepseek_v2.py:3000)
"""
_CUT = "== process {pid} (python), parent 1, state D, waits in nvidia_ioctl\nsglang::scheduler_{rank}\nno stack: py-spy gave nothing for 5 s\n"


def dump(**ranks: str) -> str:
    return "\n".join(
        (body if body.startswith("==") else _HEAD + body).format(pid=40 + at, rank=rank)
        for at, (rank, body) in enumerate(ranks.items())
    )


def test_all_ranks_in_one_collective() -> None:
    said = sentences(dump(TP0=_REDUCE, TP1=_REDUCE, TP2=_REDUCE))
    assert said == (
        "all 3 stand in all_reduce (torch/distributed/distributed_c10d.py:2806),"
        " a call that each rank has to make",
    )


def test_the_odd_rank_is_named_and_that_the_others_wait_for_it() -> None:
    said = sentences(dump(TP0=_REDUCE, TP1=_LOAD, TP2=_REDUCE, TP3=_REDUCE))
    assert said[0] == "TP1 stands in read (safetensors/torch.py:40)"
    assert said[1].startswith("TP0, TP2, TP3 stand in all_reduce")
    assert said[2].startswith("the others wait for TP1 in all_reduce")


def test_a_rank_in_the_kernel_is_told_by_what_it_waits_in() -> None:
    said = sentences(dump(TP0=_REDUCE, DP0_TP1=_CUT))
    assert "DP0 TP1 has no stack: state D, waiting in nvidia_ioctl" in said


def test_other_processes_count_only_where_there_is_no_rank() -> None:
    other = _HEAD.replace("sglang::scheduler_{rank}", "python -m server") + _LOAD
    assert "process 41" not in " ".join(sentences(dump(TP0=_REDUCE, x=other)))
    assert sentences(dump(x=other)) == ("process 40 stands in read (safetensors/torch.py:40)",)


def test_what_is_no_dump_says_nothing() -> None:
    for text in (
        "",
        "\n\n",
        "== process 1: ended\n",
        "== process x (",
        "Thread 1\n  f (a:1)\n" * 99,
    ):
        assert sentences(text) == ()
        assert not standing(text)


def test_stacks_of_pystack_are_read_as_well() -> None:
    text = (
        "== process 41 (sglang::schedul), parent 40, state D, waits in nvidia_ioctl\n"
        "sglang::scheduler_TP3\n"
        "tried py-spy: left out, as the process is in state D\n"
        "Traceback for thread 44 (python) [] (most recent call last):\n"
        '    (Python) File "/usr/lib/python3.12/threading.py", line 1, in run\n'
        "Traceback for thread 41 (python) [] (most recent call last):\n"
        '    (Python) File "/x/scheduler.py", line 9, in run_event_loop\n'
        "        loop()\n"
        '    (Python) File "/x/parallel_state.py", line 5, in all_reduce\n'
        "        wait()\n"
    )
    (one,) = standing(text)
    assert (one.who, one.function, one.line) == ("TP3", "all_reduce", 5)
    assert one.collective.startswith("all_reduce (")

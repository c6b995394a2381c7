"""The root is told from what follows it, advises on it, or only looks like it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.core.causes import Cause, Role, Severity
from triage.core.diagnosis import Diagnosis
from triage.core.log.diagnose import diagnose

ARGS = "[2026-07-01 12:00:00] server_args={{'model_path': '/models/x', 'tp_size': {tp}}}\n"
PEER = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4"
SIGQUIT = "[2026-07-01 12:00:09] Received sigquit from a child process. It usually means the child failed.\n"
TORN = "[2026-07-01 12:00:09] kill_process_tree called: parent_pid=1, include_parent=True, pid=1\n"


def record(rank: str, *errors: str, function: str = "f", file: str = "/a/sglang/srt/x.py") -> str:
    """A scheduler's fatal record; several errors make a chain in which each wraps the last."""
    tag = f" {rank}" if rank != "main" else ""
    text = f"[2026-07-01 12:00:05{tag}] Scheduler hit an exception: "
    joint = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
    body = f'Traceback (most recent call last):\n  File "{file}", line 7, in {function}\n    raise X(\n'
    return text + joint.join(body + error for error in errors) + "\n\n"


def started(tp: int) -> str:
    tags = [f" TP{n}" if tp > 1 else "" for n in range(tp)]
    return ARGS.format(tp=tp) + "".join(
        f"[2026-07-01 12:00:01{tag}] Init parallel begin.\n" for tag in tags
    )


def found(text: str, *causes: Cause) -> Diagnosis:
    return diagnose([text.encode()], causes)


def line_of(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.split("\n"), start=1) if part in line)


def test_peer_error_is_a_cascade() -> None:
    text = started(8)
    text += "".join(record(f"TP{n}", PEER) for n in range(8) if n != 3)
    text += record("TP3", "TypeError: unsupported operand") + SIGQUIT + TORN
    d = found(text)
    assert d.root is not None
    assert (d.root.text, d.ranks) == ("TypeError: unsupported operand", ("TP3",))
    assert d.ranks_total == 8
    assert len(d.cascade) == 8
    assert d.teardown == (line_of(text, "kill_process_tree"),)


def test_the_same_error_on_all_ranks_is_one_failure() -> None:
    d = found(started(8) + "".join(record(f"TP{n}", f"ValueError: on TP{n}") for n in range(8)))
    assert (d.ranks, d.cascade) == (("all",), ())


def test_a_failure_of_some_ranks_names_them_in_order() -> None:
    d = found(started(16) + record("TP12", "ValueError: x") + record("TP2", "ValueError: x"))
    assert d.ranks == ("TP2", "TP12")


def test_a_launch_without_tags_fails_in_main() -> None:
    assert found(started(1) + record("main", "ValueError: x") + SIGQUIT).ranks == ("main",)


def test_the_launchers_line_may_stand_before_the_traceback() -> None:
    text = started(2) + SIGQUIT + record("TP1", "ValueError: late")
    d = found(text)
    assert d.root is not None
    assert d.root.text == "ValueError: late"
    assert d.cascade == (line_of(text, "Received sigquit"),)


def test_the_launchers_own_exception_is_never_the_root() -> None:
    text = started(1) + "Traceback (most recent call last):\n" \
        '  File "/a/sglang/launch_server.py", line 84, in <module>\n    run()\n' \
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code" \
        " is -9 (SIGKILL), a common cause is the OS OOM killer.\n"  # fmt: skip
    d = found(text)
    assert (d.outcome, d.root, d.cause, d.fingerprint) == ("failed", None, None, None)
    assert d.cascade == (6,)


def test_a_segfault_that_only_the_launcher_reports_has_a_fingerprint() -> None:
    died = "[2026-07-01 12:00:09] Subprocess scheduler_0 (pid=7) crashed with exit code -11."
    d = found(started(1) + died + "\n")
    assert (d.outcome, d.root) == ("failed", None)
    assert d.fingerprint is not None


OOM = Cause(id="oom", title="out of memory", patterns=(r"CUDA out of memory",))


def test_the_text_inside_the_capture_wrapper_is_classified() -> None:
    wrapped = "Exception: Capture cuda graph failed: CUDA out of memory. Tried 1 GiB.\n" \
        "Possible solutions:\n1. set --mem-fraction-static to a smaller value"  # fmt: skip
    text = started(1) + record("main", "RuntimeError: CUDA out of memory. Tried 1 GiB.", wrapped)
    d = found(text, OOM)
    assert d.root is not None
    assert (d.cause, d.root.line) == ("oom", line_of(text, "RuntimeError: CUDA"))
    assert [decoy.line for decoy in d.decoys] == [line_of(text, "Possible solutions")]


def test_a_wrapper_whose_reason_scrolled_away_is_classified_too() -> None:
    anchored = Cause(id="oom", title="t", patterns=(r"^CUDA out of memory",))
    d = found("Exception: Capture cuda graph failed: CUDA out of memory.\n" + SIGQUIT, anchored)
    assert d.cause == "oom"


def test_advice_is_a_decoy_and_never_evidence() -> None:
    advice = Cause(id="advice", title="printed always", role=Role.ADVICE, patterns=("Try less",))
    text = started(1) + record("main", "ValueError: x\nTry less memory")
    d = found(text, advice)
    assert d.cause is None
    assert d.root is not None
    assert [(decoy.line, decoy.why) for decoy in d.decoys] == [(d.root.line + 1, "printed always")]


def test_a_named_cause_beats_an_unnamed_exception() -> None:
    text = (
        started(2) + record("TP0", "ValueError: x") + record("TP1", "OSError: CUDA out of memory")
    )
    assert found(text, OOM).cause == "oom"


def test_what_a_rank_survived_is_no_reason() -> None:
    text = (
        started(1) + "[2026-07-01 12:00:02] CUDA out of memory, trying again\n"
        "[2026-07-01 12:00:03] Load weight begin. avail mem=1 GB\n"
        + record("main", "ValueError: x")
    )
    d = found(text, OOM)
    assert d.cause is None
    assert d.root is not None
    assert d.root.text == "ValueError: x"


def test_a_progress_bar_redrawn_on_the_way_out_does_not_clear_an_error() -> None:
    text = (
        "RuntimeError: shapes differ\n\nMulti-thread loading shards:   0% Completed | 0/1 [00:00]\n"
    )
    d = found(text + SIGQUIT)
    assert d.root is not None
    assert d.root.line == 1


def test_another_ranks_progress_does_not_clear_an_error() -> None:
    text = started(2) + "[2026-07-01 12:00:02 TP1] CUDA out of memory\n" \
        "[2026-07-01 12:00:03 TP0] Load weight begin. avail mem=1 GB\n" + SIGQUIT  # fmt: skip
    d = found(text, OOM)
    assert (d.cause, d.ranks) == ("oom", ("TP1",))


def test_a_cause_gives_way_to_those_that_it_names() -> None:
    general = Cause(id="general", title="t", patterns=("no device",), yields_to=("driver",))
    driver = Cause(id="driver", title="t", patterns=("driver is too old",))
    text = (
        "UserWarning: the driver is too old\n"
        + started(1)
        + record("main", "RuntimeError: no device")
    )
    d = found(text, general, driver)
    assert d.root is not None
    assert (d.cause, d.root.line) == ("driver", 1)


def test_a_cause_explains_its_consequences() -> None:
    first = Cause(id="first", title="t", patterns=("link is down",), explains=("second",))
    second = Cause(id="second", title="t", patterns=("all-reduce failed",))
    text = (
        started(2)
        + record("TP0", "ValueError: all-reduce failed")
        + record("TP1", "OSError: link is down")
    )
    assert found(text, first, second).cause == "first"
    assert found(text, second).cause == "second"


BLAS = Cause(id="blas", title="t", patterns=("CUBLAS_STATUS",), yields_to_kernels=True)


@pytest.mark.parametrize(
    ("rank", "said", "cause"),
    [
        ("TP0", "trtllm-gen kernel failed to launch", None),
        ("TP0", "DeepGEMM warm-up done", "blas"),
        ("TP1", "trtllm-gen kernel failed to launch", "blas"),
        ("TP0", "Ignore import error when loading x: No module named 'cutlass'", "blas"),
    ],
)
def test_a_late_fault_gives_way_to_a_kernel_that_failed_on_its_rank(
    rank: str, said: str, cause: str | None
) -> None:
    text = started(2) + f"[2026-07-01 12:00:02 {rank}] {said}\n"
    text += record("TP0", "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED")
    d = found(text, BLAS)
    assert d.cause == cause
    assert d.root is not None
    assert (d.root.line == 4) == (cause is None)


REFUSED = Cause(
    id="refused", title="t", severity=Severity.FATAL, general=True,
    patterns=("^ValueError: .{0,200}not supported",), frames=("x.py:f$",),
)  # fmt: skip


def test_a_general_cause_names_a_refusal_with_medium_confidence_and_its_own_fingerprint() -> None:
    pages = found(started(1) + record("main", "ValueError: pages of 3 are not supported"), REFUSED)
    heads = found(started(1) + record("main", "ValueError: odd heads are not supported"), REFUSED)
    assert (pages.cause, pages.confidence) == ("refused", "medium")
    assert pages.signature != heads.signature


def test_a_general_cause_gives_way_to_any_other_on_its_line() -> None:
    odd = Cause(id="odd", title="t", patterns=("odd heads",))
    text = started(1) + record("main", "ValueError: odd heads are not supported")
    assert found(text, REFUSED, odd).cause == "odd"
    assert found(text, odd, REFUSED).cause == "odd"


def test_a_general_cause_is_no_reason_to_pass_over_an_earlier_failure() -> None:
    text = started(2) + record("TP0", "OSError: the vault is shut")
    text += record("TP1", "ValueError: odd heads are not supported")
    d = found(text, REFUSED)
    assert (d.cause, d.ranks) == (None, ("TP0",))


def test_what_a_library_raises_below_a_frame_is_no_refusal_by_the_engine() -> None:
    text = started(1) + record("main", "ValueError: odd heads are not supported")
    assert found(text.replace("raise X(", "y = kernel(x)"), REFUSED).cause is None


def test_what_a_plugin_raises_is_no_refusal_by_the_engine_that_called_it() -> None:
    said = "odd heads are not supported"
    inner = record("main", f"ValueError: {said}", file="/a/plugin/y.py", function="g")
    outer = inner.rstrip("\n") + "\n\nDuring handling of the above exception, another exception"
    outer += ' occurred:\n\nTraceback (most recent call last):\n  File "/a/sglang/srt/x.py", line 9, in f\n'
    outer += f"    raise Exception(\nException: Capture cuda graph failed: {said}\n\n"
    assert found(started(1) + outer, REFUSED).cause is None


def test_a_line_of_native_code_belongs_to_the_rank_that_lost_no_peer() -> None:
    fault = Cause(id="fault", title="t", patterns=("access fault by GPU",))
    text = started(8) + "Memory access fault by GPU node-4 (Agent handle: 0x5) on address 0x7.\n"
    text += "".join(record(f"TP{n}", PEER) for n in range(8) if n != 3)
    assert found(text, fault).ranks == ("TP3",)
    assert found(started(8) + text.splitlines()[-1], fault).ranks != ("TP3",)


def test_a_line_of_native_code_belongs_to_the_ranks_that_raise_what_follows_from_it() -> None:
    index = Cause(id="index", title="t", patterns=("Assertion `i < n`",))
    later = Cause(id="later", title="t", patterns=("assert triggered",), yields_to=("index",))
    text = started(4) + "/a/K.cu:9: k: block: [1,0,0], thread: [2,0,0] Assertion `i < n` failed.\n"
    text += "".join(record(f"TP{n}", "RuntimeError: assert triggered") for n in (1, 2))
    d = found(text, index, later)
    assert (d.cause, d.ranks) == ("index", ("TP1", "TP2"))


def test_the_capture_wrapper_does_not_hide_a_missing_operator() -> None:
    said = "Could not run 'k::norm' with arguments from the 'CUDA' backend"
    text = started(1) + record(
        "main", f"NotImplementedError: {said}", f"Exception: Capture cuda graph failed: {said}"
    )
    d = found(text)
    assert d.root is not None
    assert d.root.text == f"NotImplementedError: {said}"


def test_frames_decide_between_equal_texts() -> None:
    absorb = Cause(id="absorb", title="t", patterns=("CUBLAS_STATUS",), frames=("forward_absorb",))
    error = "RuntimeError: CUBLAS_STATUS_EXECUTION_FAILED"
    assert (
        found(started(1) + record("main", error, function="forward_absorb"), absorb).cause
        == "absorb"
    )
    assert found(started(1) + record("main", error, function="forward"), absorb).cause is None


def test_the_phase_decides_between_equal_texts() -> None:
    weights = Cause(
        id="weight-oom", title="t", patterns=("out of memory",), phases=("weight-load",)
    )
    graphs = Cause(
        id="graph-oom", title="t", patterns=("out of memory",), phases=("graph-capture",)
    )
    error = "RuntimeError: out of memory"
    loading = started(1) + record("main", error, function="load_weights")
    capture = (
        started(1)
        + "[2026-07-01 12:00:02] Capture target decode CUDA graph begin. x\n"
        + record("main", error)
    )
    assert (found(loading, weights, graphs).cause, found(loading, weights, graphs).phase) == (
        "weight-oom",
        "weight-load",
    )
    assert (found(capture, weights, graphs).cause, found(capture, weights, graphs).phase) == (
        "graph-oom",
        "graph-capture",
    )


def test_a_line_before_the_match_can_be_demanded() -> None:
    cause = Cause(id="c", title="t", patterns=("boom",), context=(r"'tp_size': 2\b",))
    assert found(started(2) + record("TP0", "ValueError: boom"), cause).cause == "c"
    assert found(started(4) + record("TP0", "ValueError: boom"), cause).cause is None


def test_a_benign_traceback_cannot_win() -> None:
    benign = Cause(id="b", title="t", role=Role.BENIGN, patterns=("_freeze_gc",))
    timeout = Cause(id="timeout", title="t", patterns=("timed out",))
    text = (
        started(1) + "Traceback (most recent call last):\n"
        '  File "/a/sglang/http_server.py", line 3, in _freeze_gc\n    post()\n'
        "requests.exceptions.ConnectTimeout: timed out\n" + record("main", "ValueError: x")
    )
    assert found(text, benign, timeout).cause is None


def test_one_cause_on_a_log_line_and_in_an_exception_has_the_exception_as_root() -> None:
    text = (
        started(1)
        + "[2026-07-01 12:00:02] Error: CUDA out of memory\n"
        + record("main", "ValueError: CUDA out of memory")
    )
    d = found(text, OOM)
    assert d.root is not None
    assert d.root.text == "ValueError: CUDA out of memory"


def test_a_local_fault_beats_a_broken_connection_that_came_first() -> None:
    text = started(2) + record("TP0", "RuntimeError: NCCL error: unhandled system error")
    d = found(text + record("TP1", "IndexError: expert 8 is out of range"))
    assert d.root is not None
    assert (d.root.rank, d.ranks) == ("TP1", ("TP1",))


def test_the_first_start_that_fails_counts() -> None:
    first = started(1) + record("main", "ValueError: first") + SIGQUIT
    second = started(1) + record("main", "OSError: port is taken") + SIGQUIT
    d = found(first + second)
    assert d.root is not None
    assert (d.root.text, d.root.line) == ("ValueError: first", 6)
    ready = "[2026-07-01 12:01:00] The server is fired up and ready to roll!\n"
    assert found(started(1) + ready + second).root is not None


def test_rival_causes_are_named_beside_the_best() -> None:
    other = Cause(id="other", title="t", patterns=("out of memory",), severity=Severity.SUSPECT)
    d = found(started(1) + record("main", "ValueError: CUDA out of memory"), OOM, other)
    assert d.cause == "oom"
    assert [a.cause for a in d.also] == ["other"]
    assert d.confidence == "medium"


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(
            ["ValueError: a", "OSError: b", PEER, "RuntimeError: CUDA out of memory", "quit", "Load"]
        )),
        max_size=10,
    )
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_no_consequence_stands_before_the_root_on_its_own_rank(
    events: list[tuple[int, str]],
) -> None:
    text, owners = started(4), ["main"] + [f"TP{n}" for n in range(4)]
    for rank, event in events:
        part = {
            "quit": SIGQUIT,
            "Load": f"[2026-07-01 12:00:03 TP{rank}] Load weight begin. avail mem=1 GB\n",
        }.get(event) or record(f"TP{rank}", event)
        text += part
        owners += ["main" if event == "quit" else f"TP{rank}"] * part.count("\n")
    d = found(text, OOM)
    if d.root is not None:
        assert d.root.line not in d.cascade
        assert all(n > d.root.line for n in d.cascade if owners[n - 1] == d.root.rank)
    assert found(text, OOM) == d

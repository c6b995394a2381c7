"""From the bytes of a log to the whole answer."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage.core.causes import Cause, Disposition, Remedy
from triage.core.config import SetFlag
from triage.core.diagnosis import Diagnosis
from triage.core.flags import FlagSpec, FlagTable
from triage.core.launch import Crashed, Hung, Interrupted, Outcome, Ready
from triage.core.log.diagnose import diagnose

T = "[2026-07-01 12:00:0{}] "
ARGS = T.format(0) + "server_args={'model_path': '/models/x', 'tp_size': 1, 'page_size': 64}\n"
BEGIN = ARGS + T.format(2) + "Init parallel begin.\n"
READY = T.format(5) + "The server is fired up and ready to roll!\n"
STOP = (
    T.format(6)
    + "SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
)
DIED = (
    T.format(7) + "Subprocess scheduler_0 (pid=7) crashed with exit code -9. Triggering SIGQUIT\n"
)
TERMED = DIED.replace("-9", "-15")
BIND = (
    T.format(4)
    + "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 3): in use\n"
)
FATAL = (
    T.format(4) + "Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/x/site-packages/sglang/srt/models/llama.py", line 7, in load_weights\n    f()\n'
    "ValueError: page 64 of 100\n\n"
)
INTERRUPT = (
    "Traceback (most recent call last):\n"
    '  File "/usr/lib/python3.11/asyncio/runners.py", line 1, in run\n    raise KeyboardInterrupt()\n'
    "KeyboardInterrupt\n"
)
TABLE = FlagTable(
    "0.5.23",
    [
        FlagSpec(name="model-path", field="model_path"),
        FlagSpec(name="tp-size", field="tp_size", type="int", default=1),
        FlagSpec(name="page-size", field="page_size", type="int", default=None),
    ],
)


def found(text: str | bytes, *causes: Cause, outcome: Outcome | None = None) -> Diagnosis:
    raw = text if isinstance(text, bytes) else text.encode()
    return diagnose([raw], causes, source="server.log", outcome=outcome, table=TABLE)


@pytest.mark.parametrize(
    ("text", "outcome", "phase"),
    [
        ("", "empty", "unknown"),
        ("hello\nworld\n", "empty", "unknown"),
        (BEGIN + READY, "healthy", "serving"),
        (BEGIN + READY + STOP, "healthy", "serving"),
        (BEGIN + READY + STOP + DIED, "healthy", "serving"),
        (BEGIN + READY + INTERRUPT, "healthy", "serving"),
        (BEGIN + FATAL, "failed", "weight-load"),
        (BEGIN + READY + FATAL, "failed", "weight-load"),
        (BEGIN + READY + DIED, "failed", "serving"),
        (BEGIN + READY + TERMED, "healthy", "serving"),
        (BEGIN + DIED, "failed", "dist-init"),
        (BEGIN + TERMED, "interrupted", "dist-init"),
        (BEGIN + TERMED + DIED, "failed", "dist-init"),
        (BEGIN + BIND + READY, "failed", "warmup-request"),
        (BEGIN + STOP + DIED, "interrupted", "dist-init"),
        (BEGIN + INTERRUPT, "interrupted", "dist-init"),
        (BEGIN, "hung", "dist-init"),
        ("usage: sglang serve [-h]\nsglang serve: error: unrecognized arguments: --x\n", "failed",
         "arg-parse"),
    ],
)  # fmt: skip
def test_the_outcome_of_a_log_alone(text: str, outcome: str, phase: str) -> None:
    d = found(text)
    assert (d.outcome, d.phase) == (outcome, phase)


@pytest.mark.parametrize(
    ("known", "outcome", "confidence"),
    [
        (Ready(answer="Paris"), "healthy", "high"),
        (Hung(silent_s=600, limit="silent"), "hung", "medium"),
        (Interrupted(by="SIGINT"), "interrupted", "high"),
        (Crashed(exit_code=-9), "failed", "low"),
    ],
)
def test_a_launchers_word_outranks_the_log(known: Outcome, outcome: str, confidence: str) -> None:
    d = found(BEGIN, outcome=known)
    assert (d.outcome, d.confidence) == (outcome, confidence)


@pytest.mark.parametrize(
    ("code", "end"),
    [
        (3, "ended with exit code 3"),
        (0, "ended with exit code 0"),
        (-11, "ended by SIGSEGV"),
        (-6, "ended by SIGABRT"),
        (139, "ended by SIGSEGV"),  # as a shell or a container's runtime tells it
    ],
)
def test_a_silent_end_that_the_server_makes_itself_has_a_name(code: int, end: str) -> None:
    d = found(BEGIN, outcome=Crashed(exit_code=code))
    assert d.title == f"the server {end} and no line says why"
    assert (d.root, d.cause, d.phase) == (None, None, "dist-init")
    assert d.fingerprint_of == f"{end} in dist-init | "
    assert d.signature == d.fingerprint
    assert d.signature != found(ARGS, outcome=Crashed(exit_code=code)).signature


def test_other_silent_ends_have_other_names() -> None:
    codes = (0, 1, 3, -11, -6, -7)
    names = {found(BEGIN, outcome=Crashed(exit_code=code)).signature for code in codes}
    assert len(names - {"none"}) == len(codes)


@pytest.mark.parametrize("code", [-9, -15, -2, -1, -3, 137, 143, -10])
def test_a_signal_that_others_send_gives_no_name(code: int) -> None:
    d = found(BEGIN, outcome=Crashed(exit_code=code))
    assert (d.outcome, d.signature) == ("failed", "none")
    assert "and no line says why" in d.title


@pytest.mark.parametrize(
    "log",
    [
        BEGIN + STOP,
        BEGIN + DIED,
        BEGIN + T.format(7) + "Received sigquit from a child process. It usually means the child\n",
        BEGIN + "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9).\n",
        BEGIN + "[E] gloo/transport/tcp/pair.cc:5] Connection closed by peer [10.0.0.1]:4\n",
        "simulated | triage.replay: refused: no entry for ep-size, x\n",
    ],
    ids=["stop", "child-15", "child", "child-9", "peer", "refused"],
)
def test_an_exit_code_that_follows_from_something_else_gives_no_name(log: str) -> None:
    assert found(log, outcome=Crashed(exit_code=1)).signature == "none"


def test_a_line_that_says_why_outranks_the_exit_code() -> None:
    assert found(BEGIN + FATAL, outcome=Crashed(exit_code=-11)).root is not None


@pytest.mark.parametrize("outcome", [None, Crashed(exit_code=-9), Crashed(exit_code=1)])
def test_a_childs_end_that_the_log_tells_has_a_name(outcome: Outcome | None) -> None:
    died = "Subprocess scheduler_0 (pid=7) crashed with exit code {}. Triggering SIGQUIT\n"
    segv, abort = (found(BEGIN + died.format(n), outcome=outcome) for n in (-11, -6))
    assert segv.title == "a process of the server ended by SIGSEGV and no line says why"
    assert segv.fingerprint_of == "ended by SIGSEGV in dist-init | "
    assert abort.fingerprint_of == "ended by SIGABRT in dist-init | "
    assert segv.root is None


def test_a_server_that_refuses_generations_has_a_failure_with_a_name() -> None:
    def refused(answer: str, log: str = BEGIN + READY) -> Diagnosis:
        reason = f"it answers no generation: {answer}"
        return found(log, outcome=Crashed(exit_code=None, reason=reason))

    d = refused("HTTP 500: worker 7 is out of luck")
    assert d.title == (
        "the server came up, but it answers no generation: HTTP 500: worker 7 is out of luck"
    )
    assert (d.outcome, d.phase, d.root) == ("failed", "serving", None)
    assert d.fingerprint_of == (
        "it answers no generation: HTTP 500 in serving | worker <number> is out of luck"
    )
    assert d.signature == refused("HTTP 500: worker 8 is out of luck").signature
    assert d.signature != refused("HTTP 400: worker 7 is out of luck").signature
    request = (
        T.format(6) + "ERROR:    Exception in ASGI application\n"
        "Traceback (most recent call last):\n"
        '  File "/x/site-packages/sglang/srt/entrypoints/http_server.py", line 7, in generate\n'
        "    f()\nKeyError: 'meta'\n"
    )
    told = refused("HTTP 500: Internal Server Error", BEGIN + READY + request)
    assert told.root is not None
    assert told.root.text == "KeyError: 'meta'"


def test_a_failure_gives_every_part_of_the_answer() -> None:
    d = found(BEGIN + FATAL)
    assert d.root is not None
    assert d.root.line == 6
    assert d.root.offset == (BEGIN + FATAL).index("ValueError")
    assert (d.root.rank, d.root.time) == ("main", "2026-07-01T12:00:04")
    assert d.traceback is not None
    assert (d.traceback.exception, d.traceback.message) == ("ValueError", "page 64 of 100")
    assert [f.function for f in d.traceback.frames] == ["load_weights"]
    assert (
        d.fingerprint_of
        == "ValueError | page <number> of <number> | sglang.srt.models.llama:load_weights"
    )
    assert (d.engine, d.ranks_total, d.source) == ("sglang", 1, "server.log")
    assert d.signature == d.fingerprint


def test_hung_without_a_launcher_says_that_the_log_may_be_cut() -> None:
    d = found(BEGIN)
    assert (d.title, d.confidence) == ("hung, or the log was cut", "low")
    assert d.root is not None
    assert (d.root.line, d.root.text) == (2, "Init parallel begin.")


def test_an_exception_that_was_only_logged_does_not_explain_a_hang() -> None:
    logged = T.format(3) + "It failed, going on:\nTraceback (most recent call last):\n" \
        '  File "a.py", line 1, in f\n    x()\nOSError: no cache\n'  # fmt: skip
    d = found(BEGIN + logged, outcome=Hung(silent_s=600, limit="silent"))
    assert d.root is not None
    assert (d.outcome, d.root.text) == ("hung", "Init parallel begin.")


NEVER = Cause(
    id="never-scheduled", title="t", hang=True,
    patterns=(r"GET /model_info \S+ 200",), absent=("Prefill batch",),
)  # fmt: skip
ASKED = T.format(4) + 'INFO:     127.0.0.1:5 - "GET /model_info HTTP/1.1" 200 OK\n'
PREFILL = T.format(5) + "Prefill batch, #new-seq: 1\n"


def test_a_hang_has_a_cause_if_what_should_follow_never_does() -> None:
    d = found(BEGIN + ASKED + ASKED + STOP + DIED, NEVER)
    assert (d.outcome, d.cause, d.confidence) == ("hung", "never-scheduled", "medium")
    assert d.root is not None
    assert d.root.line == 3


def test_what_follows_refutes_a_hang_cause() -> None:
    assert found(BEGIN + ASKED + PREFILL + STOP, NEVER).outcome == "interrupted"


def test_an_exception_refutes_a_hang_cause() -> None:
    d = found(BEGIN + ASKED + FATAL, NEVER)
    assert (d.outcome, d.cause) == ("failed", None)


def test_a_hang_names_the_ranks_that_came_least_far() -> None:
    text = ARGS.replace("'tp_size': 1", "'tp_size': 3")
    text += "".join(f"[2026-07-01 12:00:01 TP{n}] Init parallel begin.\n" for n in range(3))
    text += "".join(
        f"[2026-07-01 12:00:02 TP{n}] Init parallel ends. elapsed=1 s\n" for n in (0, 2)
    )
    assert found(text).ranks == ("TP1",)


def test_the_killed_process_is_in_the_kernels_log() -> None:
    oom = Cause(
        id="host-oom-killed", title="t", patterns=("Memory cgroup out of memory: Killed process",)
    )
    died = "Traceback (most recent call last):\n" \
        '  File "/a/sglang/launch_server.py", line 84, in <module>\n    run()\n' \
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). OOM killer.\n"  # fmt: skip
    killed = "[ 1535.663290] Memory cgroup out of memory: Killed process 15613 (sglang::schedul)\n"
    assert found(BEGIN + died, oom).cause is None
    assert found(BEGIN + died + killed, oom).cause == "host-oom-killed"


BIG = Cause(
    id="big",
    title="t",
    patterns=(r"page (?P<page>\d+) of (?P<limit>\d+)",),
    culprit_flags=("tp-size", "page-size"),
    remedies=(
        Remedy(say="Use {limit}", set_flags=(("page-size", "{limit}"), ("x", True)),
               disposition=Disposition.LOSSY, cost="c", evidence="e"),
        Remedy(say="Use {nothing}", set_flags=(("page-size", "{nothing}"),), unset=("page-size",),
               set_env=(("A", "1"),)),
    ),
)  # fmt: skip


def test_remedies_are_filled_in() -> None:
    (first,) = found(BEGIN + FATAL, BIG).remedies
    assert first.say == "Use 100"
    assert first.changes == (SetFlag("page-size", "100"), SetFlag("x", value=True))
    assert (first.disposition, first.cost, first.evidence) == ("lossy", "c", "e")


def test_a_remedy_without_its_value_is_told_only_where_there_is_no_other() -> None:
    (only,) = found(BEGIN + FATAL, replace(BIG, remedies=BIG.remedies[1:])).remedies
    assert only.open
    assert only.changes == (), "an edit of several settings is made whole or not at all"


def test_suspects_are_flags_that_the_launch_has() -> None:
    d = found(BEGIN + FATAL, BIG)
    assert d.config.flag_values() == {"model-path": "/models/x", "page-size": "64"}
    assert [(s.flag, s.value, s.why) for s in d.suspects] == [
        ("page-size", "64", "usual reason of big")
    ]


def test_a_number_in_the_message_names_the_flag_with_that_value() -> None:
    (suspect,) = found(BEGIN + FATAL).suspects
    assert (suspect.flag, suspect.why) == ("page-size", "the message says 64, its value")


def test_a_flag_in_the_message_is_a_suspect_without_any_arguments() -> None:
    text = FATAL.replace("page 64 of 100", "page_size must be even")
    (suspect,) = found(text).suspects
    assert (suspect.flag, suspect.value) == ("page-size", None)


def test_of_a_refused_command_line_the_first_option_is_the_users() -> None:
    text = "sglang serve: error: ambiguous option: --page could match --page-size, --page-x\n"
    assert [s.flag for s in found(text).suspects] == ["page"]


def test_a_simulated_log_says_so_and_where_it_is_from() -> None:
    lines = ["triage.replay: landscape k: entry assumed: ep-size", *(BEGIN + FATAL).split("\n")]
    d = found("".join(f"simulated | {line}\n" for line in lines))
    assert (d.simulated, d.provenance, d.refused) == (True, "assumed", "")
    assert d.phase == "weight-load"


def test_a_refusal_of_the_simulated_engine_is_told() -> None:
    d = found("simulated | triage.replay: refused: no entry for ep-size, x\n")
    assert (d.refused, d.outcome) == ("no entry for ep-size, x", "empty")


@pytest.mark.parametrize("wrapper", ["sglang-1  | ", "2025-11-10T09:50:25.1Z ", "0: ", "[1,0]<stdout>:",
                                     "Nov 29 20:00:00 node7 sglang[8]: ", "(Engine pid=7) "])  # fmt: skip
def test_wrappers_change_nothing_but_offsets(wrapper: str) -> None:
    plain = found(BEGIN + FATAL + DIED, BIG)
    wrapped = found(
        "".join(wrapper + line + "\n" for line in (BEGIN + FATAL + DIED).splitlines()), BIG
    )
    assert plain.root is not None
    assert wrapped.root is not None
    for field in ("line", "rank", "time", "text"):
        assert getattr(wrapped.root, field) == getattr(plain.root, field)
    for field in ("outcome", "phase", "cause", "ranks", "cascade", "timeline", "config"):
        assert getattr(wrapped, field) == getattr(plain, field)


@given(st.lists(st.integers(1, 200), max_size=30))
@settings(max_examples=50, deadline=None)
def test_chunks_may_be_cut_anywhere(cuts: list[int]) -> None:
    raw = (BEGIN + ASKED + FATAL + DIED).encode()
    chunks, rest = [], raw
    for cut in cuts:
        chunks.append(rest[:cut])
        rest = rest[cut:]
    whole = diagnose([raw], [BIG, NEVER], table=TABLE)
    assert diagnose([*chunks, rest], [BIG, NEVER], table=TABLE) == whole


@given(st.binary(max_size=2000))
@settings(max_examples=100, deadline=None)
def test_any_bytes_have_an_answer(raw: bytes) -> None:
    assert found(raw, BIG, NEVER).outcome in {"empty", "failed", "hung", "interrupted", "healthy"}


@given(st.integers(0, len(BEGIN + FATAL + DIED)), st.integers(0, len(BEGIN + FATAL + DIED)))
@settings(max_examples=100, deadline=None)
def test_a_torn_log_has_an_answer(start: int, end: int) -> None:
    piece = (BEGIN + FATAL + DIED)[start:end].encode() + b"\xe2\x82" + BEGIN.encode()
    d = found(piece, BIG)
    assert d == found(piece, BIG)
    assert d.root is None or piece[d.root.offset :].decode("utf-8", "replace")


@pytest.mark.parametrize(
    "raw",
    [
        random.Random(7).randbytes(2_000_000),
        b"Error: " * 150_000,
        b"a" * 1_000_000 + b"\nValueError: x\n",
        b"\r0% Completed | 1" * 60_000,
        b"\x1b[31m" * 100_000,
        b"Traceback (most recent call last):\n" * 20_000,
        b'  File "a.py", line 1, in f\n' * 20_000,
        b"[2026-07-01 12:00:00] Received sigquit from a child process. It\n" * 20_000,
        b"RuntimeError: boom\n" * 20_000,
        b'{"log":"' + b"[" * 100_000,
        b"sglang-1 | " * 50_000,
    ],
    ids=range(11),
)
def test_hostile_input_is_answered_in_time(raw: bytes) -> None:
    begun = time.process_time()
    assert found(raw, BIG, NEVER, OOM).outcome in {"empty", "failed", "hung"}
    assert time.process_time() - begun < 10  # seconds; a quadratic step takes minutes


def test_a_traceback_cut_at_both_ends_cites_a_line_that_is_there() -> None:
    raw = b'  File "/x/models/llama.py", line 7, in load_weights\n    f()\n'
    root = found(raw).root
    assert root is not None
    assert root.line == 1
    assert root.text.encode() in raw


def test_an_import_that_failed_with_nothing_around_it_is_in_the_import() -> None:
    assert found(b"ImportError: cannot import name 'f' from 'sglang.utils'\n").phase == "import"


OOM = Cause(id="oom", title="t", patterns=("CUDA out of memory",))

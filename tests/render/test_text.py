"""The answer as a person reads it: what, where, why, what to ignore, what to do."""

from __future__ import annotations

from dataclasses import replace

from triage.core.config import SetEnv, SetFlag, UnsetFlag
from triage.core.diagnosis import (
    Advice,
    Alternative,
    Decoy,
    Diagnosis,
    Exc,
    Explained,
    Frame,
    Root,
    Suspect,
    Weighed,
)
from triage.render.text import diagnosis_text

NAMED = Diagnosis(
    source="server.log",
    outcome="failed",
    phase="kv-pool-init",
    cause="kv-pool-no-room",
    title="no memory is left for the KV pool",
    confidence="high",
    fingerprint="v1:0",
    ranks=("TP0",),
    ranks_total=8,
    root=Root(line=812, offset=9, rank="TP0", time=None, text="RuntimeError: Not enough memory"),
    traceback=Exc(
        exception="RuntimeError",
        message="Not enough memory",
        frames=(Frame(file="/opt/venv/lib/site-packages/sglang/pool.py", line=5, function="init"),),
    ),
    cascade=(840, 871),
    teardown=tuple(range(900, 914)),
    decoys=(Decoy(line=813, why="the advice does not fit"),),
    suspects=(Suspect(flag="mem-fraction-static", value="0.95", why="the message names it"),),
    remedies=(
        Advice(
            say="Lower the fraction",
            changes=(SetFlag("mem-fraction-static", "0.8"), UnsetFlag("x"), SetEnv("A", "b c")),
            disposition="lossy",
            cost="KV capacity",
            evidence="maintainer-confirmed",
        ),
    ),
    also=(Alternative(cause="weight-oom", confidence="low"),),
)


def test_a_named_failure_reads_in_the_order_of_need() -> None:
    assert diagnosis_text(NAMED).split("\n") == [
        "kv-pool-no-room  (high confidence)",
        "  No memory is left for the KV pool.",
        "  root     line 812  TP0 of 8 ranks  kv-pool-init",
        "           RuntimeError: Not enough memory",
        "  at       sglang/pool.py:5 in init",
        "  ignore   line 813: the advice does not fit",
        "  explains line 840, 871 (2 consequences), 14 lines of teardown",
        "  suspect  --mem-fraction-static 0.95: the message names it",
        "  try      Lower the fraction. Cost: KV capacity. [lossy, maintainer-confirmed]",
        "             --mem-fraction-static 0.8",
        "             without --x",
        "             A='b c'",
        "  or       weight-oom (low)",
        "next: triage explain kv-pool-no-room",
    ]


def test_a_remedy_for_some_gpus_says_for_which() -> None:
    advice = replace(NAMED.remedies[0], needs=("--tp-size", "capability < 80"))
    assert "only where capability < 80" in diagnosis_text(replace(NAMED, remedies=(advice,)))


def test_all_ranks_are_counted() -> None:
    assert "line 812  all 8 ranks  kv-pool-init" in diagnosis_text(replace(NAMED, ranks=("all",)))


def test_an_unknown_failure_shows_its_fingerprint() -> None:
    text = diagnosis_text(replace(NAMED, cause=None, title=""))
    assert text.startswith("unknown failure in kv-pool-init  (v1:0)\n")
    assert text.endswith(
        "\nnext: triage bisect --good COMMAND_THAT_WORKS --bad COMMAND_THAT_FAILED"
    )


def test_an_unnamed_assertion_shows_the_line_that_failed() -> None:
    bare = replace(
        NAMED,
        root=Root(line=9, offset=0, rank="main", time=None, text="AssertionError"),
        traceback=Exc(exception="AssertionError", message="assert a >= b"),
    )
    assert "           AssertionError\n           assert a >= b\n" in diagnosis_text(bare)


def test_other_outcomes_have_their_own_first_line() -> None:
    def first(outcome: str, title: str = "") -> str:
        d = Diagnosis(source="-", outcome=outcome, phase="weight-load", title=title)
        return diagnosis_text(d).split("\n")[0]

    assert first("healthy") == "healthy: the server was ready"
    assert first("empty") == "empty: no line of an engine"
    assert first("interrupted") == "interrupted in weight-load: somebody stopped the launch"
    assert first("hung", "hung, or the log was cut") == (
        "hung, or the log was cut in weight-load  (low confidence)"
    )
    assert first("failed") == "failed in weight-load: no line says why"


def test_a_failure_named_by_its_end_says_how_it_ended() -> None:
    end = Diagnosis(
        source="-", outcome="failed", phase="serving", fingerprint="v1:0",
        title="the server came up, but it answers no generation: HTTP 500: \x1b[2J" + 30 * " why",
    )  # fmt: skip
    lines = diagnosis_text(end).split("\n")
    assert lines[0].startswith(
        "failed in serving: the server came up, but it answers no generation"
    )
    assert lines[-2].endswith("why  (v1:0)")
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in "".join(lines)


def test_a_title_begins_with_a_capital_unless_its_first_word_is_spelled_with_others() -> None:
    def second(title: str) -> str:
        return diagnosis_text(replace(NAMED, title=title)).split("\n")[1]

    assert second("the pool is empty") == "  The pool is empty."
    assert second("cuBLAS fails") == "  cuBLAS fails."
    assert second("NCCL fails") == "  NCCL fails."


def test_a_simulated_log_says_so() -> None:
    text = diagnosis_text(replace(NAMED, simulated=True))
    assert "  This log is simulated; nothing of it ran on a GPU.\n" in text


def test_a_log_cannot_move_the_cursor() -> None:
    evil = Root(line=1, offset=0, rank="main", time=None, text="Error: \x1b[2J\x07\u202egnp.exe")
    text = diagnosis_text(replace(NAMED, root=evil))
    assert all(char == "\n" or char.isprintable() for char in text)
    assert "\x1b" not in text


def test_a_long_line_is_wrapped_and_cut() -> None:
    long = Root(line=1, offset=0, rank="main", time=None, text="Error: " + "word " * 900)
    lines = diagnosis_text(replace(NAMED, root=long)).split("\n")
    assert max(map(len, lines)) <= 80
    assert len(lines) < 30


def test_explain_adds_what_the_fingerprint_was_made_of() -> None:
    text = diagnosis_text(replace(NAMED, fingerprint_of="RuntimeError | x"), explain=True)
    assert "  print    v1:0 of: RuntimeError | x\n" in text


def test_a_death_without_a_word_sends_to_the_kernels_log() -> None:
    killed = Diagnosis(source="-", outcome="failed", phase="weight-load", cascade=(7,))
    assert diagnosis_text(killed).endswith(
        "\nnext: dmesg -T | grep -i -e oom -e killed -e segfault"
    )


def test_explain_names_the_candidates_and_what_each_step_left_out() -> None:
    seen = Weighed(line=7, rank="TP1", what="ValueError: x")
    steps = (
        Explained(step="candidates", lines=(seen,), count=1),
        Explained(step="the rank went on after it", lines=(seen,), count=3),
        Explained(step="root", lines=(seen,), count=1),
    )
    text = diagnosis_text(replace(NAMED, explain=steps), explain=True)
    assert "  ranked   candidates (1):\n           line 7  TP1  ValueError: x\n" in text
    assert "  ranked   left out, the rank went on after it (3, the first 1 are):\n" in text
    assert "ranked" not in diagnosis_text(replace(NAMED, explain=steps))

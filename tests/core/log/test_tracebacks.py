"""Tracebacks of several processes come apart, and chains stay together."""

from __future__ import annotations

from triage.core.log.candidates import chosen
from triage.core.log.diagnose import diagnose
from triage.core.log.lines import clean
from triage.core.log.tracebacks import Traceback, Tracebacks, unwrapped
from triage.knowledge.stored import load_causes

HEAD = "Traceback (most recent call last):"


def parse(*lines: str) -> list[Traceback]:
    collector = Tracebacks()
    for number, text in enumerate("\n".join(lines).split("\n"), start=1):
        for line in clean(text.encode(), number * 100, number):
            collector.feed(line)
    return collector.finished


def record(rank: str, error: str, function: str = "f") -> str:
    return (
        f"[2026-07-01 12:00:00 {rank}] Scheduler hit an exception: {HEAD}\n"
        f'  File "/a/sglang/srt/x.py", line 7, in {function}\n    call()\n    ^^^^^^\n{error}\n'
    )


def test_a_head_may_stand_anywhere_in_a_line() -> None:
    (tb,) = parse(record("TP3", "ValueError: boom"))
    assert (tb.rank, tb.header) == ("TP3", "Scheduler hit an exception:")
    assert (tb.exception, tb.message, tb.line, tb.offset) == ("ValueError", "boom", 5, 500)
    assert [(f.file, f.line, f.function) for f in tb.frames] == [("/a/sglang/srt/x.py", 7, "f")]
    assert tb.code == "call()"


def test_eight_ranks_one_after_another_stay_apart() -> None:
    found = parse(*(record(f"TP{n}", f"ValueError: rank {n}") for n in range(8)))
    assert [(tb.rank, tb.message) for tb in found] == [(f"TP{n}", f"rank {n}") for n in range(8)]


def test_a_record_of_another_rank_neither_ends_nor_joins_one() -> None:
    (tb,) = parse(
        f"[2026-07-01 12:00:00 TP0] Scheduler hit an exception: {HEAD}",
        '  File "a.py", line 1, in f',
        "[2026-07-01 12:00:00 TP1] Load weight begin.",
        "    call()",
        "node7:812:944 [1] NCCL INFO Bootstrap",
        "ValueError: boom",
    )
    assert (tb.rank, tb.line, tb.code, len(tb.frames)) == ("TP0", 6, "call()", 1)


def test_a_traceback_inside_another_returns_to_the_first() -> None:
    inner, outer = parse(
        f"[2026-07-01 12:00:00 TP0] Scheduler hit an exception: {HEAD}",
        '  File "a.py", line 1, in outer',
        record("TP1", "ValueError: inner").rstrip(),
        '  File "b.py", line 2, in outer_again',
        "KeyError: 'outer'",
    )
    assert (inner.rank, inner.message) == ("TP1", "inner")
    assert (outer.rank, outer.message) == ("TP0", "'outer'")
    assert [f.function for f in outer.frames] == ["outer", "outer_again"]


def test_prefixed_streams_are_read_apart_line_by_line() -> None:
    lines = []
    for text in (HEAD, '  File "a.py", line 1, in f', "    call()"):
        lines += [f"[rank{n}]: {text}" for n in range(8)]
    lines += [f"[rank{n}]: ValueError: rank {n}" for n in range(8)]
    found = parse(*lines)
    assert [(tb.rank, tb.message, len(tb.frames)) for tb in found] == [
        (f"rank{n}", f"rank {n}", 1) for n in range(8)
    ]


def test_a_direct_cause_links_to_the_first_exception() -> None:
    first, last = parse(
        HEAD, '  File "a.py", line 1, in f', "OSError: disk", "",
        "The above exception was the direct cause of the following exception:", "",
        HEAD, '  File "b.py", line 1, in g', '    raise RuntimeError("load") from e',
        "RuntimeError: load",
    )  # fmt: skip
    assert (last.relation, last.previous) == ("cause", first)
    assert chosen(last) is first


def during(first: str, code: str, last: str) -> Traceback:
    return parse(
        HEAD, '  File "a.py", line 1, in f', first, "",
        "During handling of the above exception, another exception occurred:", "",
        HEAD, '  File "b.py", line 1, in g', f"    {code}", last,
    )[-1]  # fmt: skip


def test_a_signpost_gives_way_to_what_was_raised_on_purpose() -> None:
    tb = during("KeyError: 'foo'", "raise ValueError(", "ValueError: model type `foo` is unknown")
    assert chosen(tb).exception == "ValueError"


def test_an_accident_on_the_way_out_does_not_hide_the_first() -> None:
    tb = during("RuntimeError: CUDA error", "del self.x", "AttributeError: x")
    assert chosen(tb).exception == "RuntimeError"


def test_a_wrapper_raised_on_purpose_does_not_hide_a_real_error() -> None:
    wrapped = "Exception: Capture cuda graph failed: CUDA out of memory"
    tb = during("RuntimeError: CUDA out of memory", "raise Exception(", wrapped)
    assert chosen(tb).exception == "RuntimeError"


def test_an_empty_wrapper_does_not_hide_a_real_error_either() -> None:
    tb = during("NotImplementedError", "raise Exception(", "Exception: Capture cuda graph failed: ")
    assert chosen(tb).exception == "NotImplementedError"


def test_what_a_command_printed_says_more_than_that_it_failed() -> None:
    command = "subprocess.CalledProcessError: Command '['ninja']' returned non-zero exit status 1."
    told = ("RuntimeError: Ninja build failed. Ninja output:", "x.cu:1:10: fatal error: y.h: none")
    for said, expected in ((told, "RuntimeError"), (told[:1], "subprocess.CalledProcessError")):
        tb = parse(
            HEAD, '  File "a.py", line 1, in f', command, "",
            "The above exception was the direct cause of the following exception:", "",
            HEAD, '  File "b.py", line 1, in g', "    raise RuntimeError(msg) from e", *said,
        )[-1]  # fmt: skip
        assert chosen(tb).exception == expected


def test_a_message_goes_on_until_the_next_record() -> None:
    (tb,) = parse(
        record("TP0", "ValueError: topology is wrong:\n  tp_size=1\n  ep_size=2"),
        "[2026-07-01 12:00:00] Received sigquit from a child process.",
    )
    assert tb.more == ["  tp_size=1", "  ep_size=2"]


def test_a_bare_assertion_keeps_the_line_that_raised_it() -> None:
    (tb,) = parse(
        HEAD, '  File "a.py", line 1, in make_layers', "    assert layers >= stages",
        "           ^^^^^^^^^^^^^^^^", "AssertionError",
    )  # fmt: skip
    assert (tb.exception, tb.message, tb.code) == ("AssertionError", "", "assert layers >= stages")


def test_a_capture_failure_is_unwrapped() -> None:
    assert unwrapped("Exception: Capture cuda graph failed: CUDA error: x") == "CUDA error: x"
    assert unwrapped("Exception: Capture prefill CUDA graph failed: y") == "y"
    assert unwrapped("Capture cuda graph end.") == ""


def test_group_prefixes_are_stripped() -> None:
    (tb,) = parse(
        "  | Traceback (most recent call last):",
        '  |   File "a.py", line 1, in f',
        "  | ValueError: in a group",
    )
    assert (tb.exception, tb.message, len(tb.frames)) == ("ValueError", "in a group", 1)


def test_a_file_cut_inside_a_traceback_still_has_its_exception() -> None:
    (tb,) = parse("    call()", '  File "a.py", line 1, in f', "torch.OutOfMemoryError: CUDA")
    assert (tb.exception, tb.headless, len(tb.frames)) == ("torch.OutOfMemoryError", True, 1)


def test_an_exception_alone_on_its_line_counts() -> None:
    (tb,) = parse("RuntimeError: cut off above")
    assert (tb.message, tb.headless, tb.frames) == ("cut off above", True, [])


def test_the_record_above_names_the_rank_of_a_logged_traceback() -> None:
    (tb,) = parse(
        "[2026-07-01 12:00:00 TP5] It failed:", HEAD, '  File "a.py", line 1, in f', "OSError: x"
    )
    assert (tb.rank, tb.header) == ("TP5", "It failed:")


def test_deep_recursion_keeps_the_ends() -> None:
    lines = [line for n in range(500) for line in (f'  File "a.py", line {n}, in f', "    f()")]
    (tb,) = parse(HEAD, *lines, "RecursionError: maximum recursion depth exceeded")
    assert (tb.frames[0].line, tb.frames[-1].line, len(tb.frames)) == (0, 499, 64)


def test_foreign_output_does_not_end_a_traceback() -> None:
    (tb,) = parse(HEAD, '  File "a.py", line 1, in f', "Killed", "loading: 3 files", "OSError: x")
    assert (tb.exception, tb.line) == ("OSError", 5)


def test_an_assertion_over_several_lines_is_matched_as_a_whole() -> None:
    text = (
        "[2026-07-01 12:00:00] server_args=ServerArgs(model_path='x', tp_size=6)\n"
        "[2026-07-01 12:00:09 TP3] Load weight begin. avail mem=1\n"
        "[2026-07-01 12:00:10 TP3] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/opt/sglang/srt/managers/scheduler.py", line 31, in run_scheduler_process\n'
        "    scheduler = Scheduler(\n"
        '  File "/opt/sglang/srt/models/qwen3.py", line 81, in __init__\n'
        "    assert (\n"
        "    ...<1 line>...\n"
        "        self.total_num_heads\n"
        "        % attn_tp_size == 0\n"
        "    )\n"
        "    ^\n"
        "AssertionError\n"
    )
    found = diagnose([text.encode()], load_causes())
    assert found.traceback is not None
    assert found.traceback.message.startswith("assert (")
    whole = text.replace("    ...<1 line>...\n", "")
    assert diagnose([whole.encode()], load_causes()).cause == "heads-not-divisible-tp"


def test_a_bar_that_another_process_draws_ends_no_traceback() -> None:
    bar = "Upload:  25%|##5       | 1/4 [00:01<00:03,  1.11s/it]"
    head, frame, code, _, error = record("TP3", "ValueError: boom").split("\n")[:5]
    (tb,) = parse(head, frame, bar, code, bar, error, "Expected: 3", bar, "Found: 4")
    assert (tb.rank, tb.exception, tb.message) == ("TP3", "ValueError", "boom")
    assert tb.more == ["Expected: 3", "Found: 4"]

"""High confidence is kept for causes that hardly match by accident."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triage.core.causes import Cause, Severity
from triage.core.log.confidence import weight
from triage.core.log.diagnose import diagnose
from triage.render.text import diagnosis_text

ARGS = "[2026-07-01 12:00:00] server_args={'model_path': '/models/x', 'tp_size': 1}\n"
BEGIN = "[2026-07-01 12:00:01] Init parallel begin.\n"


def fatal(error: str, function: str = "f") -> str:
    return (
        "[2026-07-01 12:00:05] Scheduler hit an exception: Traceback (most recent call last):\n"
        f'  File "/a/sglang/srt/x.py", line 7, in {function}\n    raise X(\n{error}\n\n'
    )


def sure(text: str, *causes: Cause) -> str:
    d = diagnose([text.encode()], causes)
    assert d.cause == causes[0].id
    return d.confidence


LONG = "the weights of this checkpoint have another layout"


@pytest.mark.parametrize(
    ("pattern", "error", "confidence"),
    [
        (LONG, f"ValueError: {LONG}", "high"),
        ("layout", f"ValueError: {LONG}", "medium"),
        ("AssertionError$", "AssertionError", "medium"),
        ("'NoneType' object has no attribute 'dtype'", "AttributeError: 'NoneType' object has no attribute 'dtype'", "medium"),
    ],
)  # fmt: skip
def test_a_pattern_must_say_much(pattern: str, error: str, confidence: str) -> None:
    cause = Cause(id="c", title="t", patterns=(pattern,))
    assert sure(ARGS + BEGIN + fatal(error), cause) == confidence


def test_an_accident_of_python_needs_frames_and_phase() -> None:
    error = "AttributeError: 'NoneType' object has no attribute 'dtype'"
    pattern = "'NoneType' object has no attribute"
    framed = Cause(id="c", title="t", patterns=(pattern,), frames=("absorb",))
    assert (
        sure(ARGS + BEGIN + fatal(error, "absorb"), framed) == "medium"
    )  # whose None, nobody knows
    both = Cause(id="c", title="t", patterns=(pattern,), frames=("absorb",), phases=("dist-init",))
    assert sure(ARGS + BEGIN + fatal(error, "absorb"), both) == "high"
    phased = Cause(id="c", title="t", patterns=(pattern,), phases=("dist-init",))
    assert sure(ARGS + BEGIN + fatal(error), phased) == "medium"


def test_a_phase_that_was_seen_makes_a_short_pattern_sure_and_a_cut_head_does_not() -> None:
    cause = Cause(id="c", title="t", patterns=("CUDA out of memory",), phases=("dist-init",))
    error = fatal("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate")
    assert sure(ARGS + BEGIN + error, cause) == "high"
    assert sure(error, cause) == "medium"


def test_a_logged_line_is_sure_only_if_its_cause_is_fatal() -> None:
    line = f"[2026-07-01 12:00:05] {LONG}\n"
    for severity, confidence in ((Severity.FATAL, "high"), (Severity.SUSPECT, "medium")):
        cause = Cause(id="c", title="t", patterns=(LONG,), severity=severity)
        assert sure(ARGS + BEGIN + line, cause) == confidence


def test_a_cause_that_names_a_wrapper_only_is_not_sure() -> None:
    wrapper = Cause(id="c", title="t", patterns=(LONG,))
    text = fatal("OSError: disk") + "The above exception was the direct cause of the following exception:\n\n" \
        f'Traceback (most recent call last):\n  File "/a.py", line 1, in g\n    f()\nRuntimeError: {LONG}\n'  # fmt: skip
    assert sure(ARGS + BEGIN + text, wrapper) == "medium"


def test_the_cause_whose_pattern_says_far_more_wins_a_line() -> None:
    general = Cause(
        id="general", title="t", patterns=("^ValueError: ",), frames=("f",), phases=("dist-init",)
    )
    exact = Cause(id="exact", title="t", patterns=(LONG,))
    d = diagnose([(ARGS + BEGIN + fatal(f"ValueError: {LONG}")).encode()], [general, exact])
    assert (d.cause, [a.cause for a in d.also]) == ("exact", ["general"])


@pytest.mark.parametrize(
    ("pattern", "text", "literals"),
    [
        ("abc", "abc", 3),
        (r"ab(?P<n>\d+) of (?:x|yy)", "ab7 of yy", 7),
        ("a?b*c+", "c", 1),
        ("abc", "zzz", 0),
    ],
)
def test_the_weight_is_what_a_pattern_must_see(pattern: str, text: str, literals: int) -> None:
    assert weight(Cause(id="c", title="t", patterns=(pattern,)), text) == literals


def test_what_gives_way_to_others_is_not_sure_where_the_head_of_the_log_is_missing() -> None:
    plain = Cause(id="plain", title="t", patterns=(LONG,))
    modest = replace(plain, id="modest", yields_to=("hidden",))
    error = fatal(f"ValueError: {LONG}", "run_scheduler_process")
    other = Cause(id="other", title="t", patterns=("another text than that",), explains=("plain",))
    assert sure(ARGS + BEGIN + error, plain, other) == "high"
    assert sure(BEGIN + error, plain, other) == "medium"
    inside = (
        error.partition("\n")[2] + "[2026-07-01 12:00:05] Received sigquit from a child process"
    )
    assert sure(ARGS + BEGIN + error, modest) == sure(BEGIN + error, plain) == "high"
    assert sure(BEGIN + error, modest) == sure(error, modest) == sure(inside, modest) == "medium"


def test_a_cause_of_a_phase_is_not_sure_where_the_phase_is_unknown() -> None:
    cause = Cause(id="c", title="t", patterns=(LONG,), phases=("dist-init",))
    error = fatal(f"ValueError: {LONG}")
    assert sure(ARGS + BEGIN + error, cause) == "high"
    assert sure(error, cause) == "medium"


def test_an_unknown_failure_of_a_log_without_its_start_is_told_to_be_that() -> None:
    error = fatal("ValueError: something nobody knows")
    cut, whole = (diagnose([text.encode()], ()) for text in (error, ARGS + BEGIN + error))
    assert "may begin later than the launch" in cut.title
    assert whole.title == ""
    assert "may begin later than the launch" in " ".join(diagnosis_text(cut).split())

"""Numbers and lists in a message name the flag, and what it could be instead."""

from __future__ import annotations

import pytest

from triage.core.config import Config, SetFlag, UnsetFlag
from triage.core.flags import FlagSpec, FlagTable
from triage.core.log.allowed import allowed
from triage.core.log.arithmetic import related
from triage.core.log.suspects import suspects, suspects_without_config

TABLE = FlagTable(
    "0.5.23",
    [
        FlagSpec(name="tp-size", field="tp_size", type="int", default=1),
        FlagSpec(name="page-size", field="page_size", type="int", default=None),
        FlagSpec(name="mem-fraction-static", field="mem_fraction_static", type="float"),
        FlagSpec(name="attention-backend", field="attention_backend",
                 choices=("triton", "trtllm_mha", "flashinfer", "fa4")),
        FlagSpec(name="schedule-policy", field="schedule_policy", choices=("lpm", "fcfs")),
        FlagSpec(name="trust-remote-code", field="trust_remote_code", style="switch"),
        FlagSpec(name="enable-mixed-chunk", field="enable_mixed_chunk", style="switch"),
    ],
)  # fmt: skip


@pytest.mark.parametrize(
    ("message", "flags", "suspected"),
    [
        ("CHECK_EQ(input.size(0), residual.size(0)) failed. 8 vs 32", {"tp-size": "4"}, "tp-size"),
        ("The size of tensor a (192) must match the size of tensor b (384)", {"ep-size": "2"}, "ep-size"),
        ("rank has 16 of 128 heads", {"tp-size": "8", "ep-size": "2"}, "tp-size"),
        ("Weight output_partition_size = 576 is not divisible by weight quantization block_n = 128.",
         {"tp-size": "8"}, "tp-size"),
        ("heads 6 must be divisible by 4 ranks", {"tp-size": "8", "dp-size": "2"}, "dp-size"),
        ("chunk of 100 tokens must be a multiple of the page", {"page-size": "16"}, "page-size"),
    ],
)  # fmt: skip
def test_a_sum_points_at_a_flag(message: str, flags: dict[str, str], suspected: str) -> None:
    assert suspected in {name for name, _ in related(message, flags)}


@pytest.mark.parametrize(
    ("message", "flags"),
    [
        ("worker 8 of 32 said hello", {"tp-size": "4"}),  # no size
        ("size 8 vs 33", {"tp-size": "4"}),
        ("size 8 vs 32", {"tp-size": "8"}),
        ("size 8 vs 32", {}),
    ],
)
def test_numbers_without_a_sum_point_at_nothing(message: str, flags: dict[str, str]) -> None:
    assert list(related(message, flags)) == []


def test_the_sum_is_the_reason_of_a_suspect() -> None:
    config = Config.of({"tp-size": "4", "enable-mixed-chunk": True})
    (suspect,) = suspects(None, "sizes 8 vs 32", config, {})
    assert (suspect.flag, suspect.value) == ("tp-size", "4")
    assert suspect.why == "32 is 4 times 8, and --tp-size is 4"


def test_words_for_a_flag_count_with_and_without_the_arguments() -> None:
    message = "attention heads (64) must be divisible by tensor parallel size (3)"
    (suspect,) = suspects(None, message, Config.of({"tp-size": "3"}), {})
    assert (suspect.flag, suspect.value) == ("tp-size", "3")
    (suspect,) = suspects_without_config(message, TABLE)
    assert (suspect.flag, suspect.value) == ("tp-size", None)


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("Only {'trtllm_mha', 'triton'} backends are supported. Got attention_backend=flashinfer",
         [("attention-backend", "trtllm_mha"), ("attention-backend", "triton")]),
        ("error: argument --schedule-policy: invalid choice: 'x' (choose from 'lpm', 'fcfs')",
         [("schedule-policy", "lpm"), ("schedule-policy", "fcfs")]),
        ("Cutlass MLA only supports a page_size of 128, change page_size to 128.", [("page-size", "128")]),
        ("Raise --mem-fraction-static above 0.231 or use more GPUs.", [("mem-fraction-static", "0.231")]),
        ("Please use `--attention-backend triton`.", [("attention-backend", "triton")]),
        ("Please pass the argument `trust_remote_code=True`.", [("trust-remote-code", True)]),
        ("page_size must be 64", [("page-size", "64")]),
        ("The backend 'flashinfer' is none of the supported backends: ['triton', 'fa4']",
         [("attention-backend", "triton"), ("attention-backend", "fa4")]),
    ],
)  # fmt: skip
def test_what_a_message_allows_becomes_a_change(
    message: str, changes: list[tuple[str, str | bool]]
) -> None:
    values = {"attention-backend": "flashinfer"}
    found = allowed(message, values, TABLE)
    assert [one.changes for one in found] == [(SetFlag(name, value),) for name, value in changes]
    assert {one.evidence for one in found} == {"program-output"}


def test_a_flag_that_the_message_speaks_against_is_dropped_if_it_was_given() -> None:
    message = "This model is not compatible with enable_mixed_chunk"
    (one,) = allowed(message, {"enable-mixed-chunk": True}, TABLE)
    assert one.changes == (UnsetFlag("enable-mixed-chunk"),)
    assert allowed(message, {}, TABLE) == ()


@pytest.mark.parametrize(
    "message",
    [
        "set page_size to 64",  # what it has
        "set page_size to many",
        "Only {'a', 'b'} are supported for attention_backend",  # no values of that flag
        "set OMP_NUM_THREADS to 1",
        "Possible solutions:\n1. set --mem-fraction-static to 0.8",
        "use the page or set it to 3",
    ],
)
def test_other_words_change_nothing(message: str) -> None:
    assert allowed(message, {"page-size": "64"}, TABLE) == ()


def test_a_value_in_quotes_that_must_be_is_proposed() -> None:
    message = "To use priority scheduling, schedule_policy must be 'fcfs' or 'lof'. 'lpm' is not supported."
    (one,) = allowed(message, {"schedule-policy": "lpm"}, TABLE)
    assert one.changes == (SetFlag("schedule-policy", "fcfs"),)


def test_a_refused_choice_is_answered_with_what_it_resembles_first() -> None:
    message = "error: argument --attention-backend: invalid choice: 'triiton' (choose from 'fa3', 'nsa', 'triton')"
    found = allowed(message, {}, TABLE)
    assert found[0].changes == (SetFlag("attention-backend", "triton"),)
    far = allowed(message.replace("triiton", "nosuch"), {}, TABLE)
    assert far[0].changes == (SetFlag("attention-backend", "fa3"),)


def test_a_flag_that_is_said_not_to_go_with_something_is_dropped_if_it_was_given() -> None:
    message = "--min-free-slots-delay is not supported with pipeline parallelism: slots are bounded"
    (one,) = allowed(message, {"min-free-slots-delay": "4"}, TABLE)
    assert one.changes == (UnsetFlag("min-free-slots-delay"),)
    assert allowed(message, {"pp-size": "2"}, TABLE) == ()

"""What a launch that came up shows: each check, with what it can and cannot tell."""

from __future__ import annotations

import pytest

from triage.core.config import Config
from triage.core.flags import FlagSpec, FlagTable
from triage.core.handover import checks
from triage.core.handover.checks import Reply
from triage.core.handover.confirmation import (
    Check,
    Confirmation,
    Exchange,
    Result,
    Start,
    why_not,
)
from triage.core.handover.load import Level, Request, level_of, quantile
from triage.core.handover.served import Served, read_served

TABLE = FlagTable(
    "1",
    [
        FlagSpec(name="page-size", field="page_size", type="int"),
        FlagSpec(name="mem-fraction-static", field="mem_fraction_static", type="float"),
        FlagSpec(name="trust-remote-code", field="trust_remote_code", style="switch"),
        FlagSpec(name="dtype", field="dtype"),
    ],
)


def told(check: Check | None) -> tuple[Result, str]:
    assert check is not None
    return check.result, check.say


def test_answers_that_differ_fail() -> None:
    result, say = told(checks.answers_check([Exchange(prompt="Hi", answers=("a", "b"))]))
    assert result is Result.FAILED
    assert say == "the two answers at temperature 0 do not agree (to 'Hi')"
    assert told(checks.answers_check([]))[0] is Result.FAILED


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(""), "the answer to 'p' is empty"),
        (Reply(" \n"), "the answer to 'p' is empty"),
        (Reply("!!!!!!!!", (0,) * 8), "token 0 ('!') 8 times: garbage"),
        (Reply("!!!!!!!!"), "'!' 8 times: garbage"),
        (Reply("the the the the the the the the"), "'the' 8 times: garbage"),
        (Reply("a\ufffd\ufffdb\x17", (1, 2, 3, 4, 5)), "60 % of the characters"),
    ],
)
def test_what_is_no_text_fails(reply: Reply, says: str) -> None:
    result, say = told(checks.text_check({"p": reply}))
    assert result is Result.FAILED
    assert says in say


@pytest.mark.parametrize(
    "reply",
    [
        Reply(" Paris. It is", (1, 2, 3, 4)),
        Reply(" 5, 6, 7,\n8\t"),
        Reply("!!!!!!!", (0,) * 7),  # too few to say
        Reply(" 東京です。"),
        Reply("🙂 fine 🙂"),
    ],
)
def test_text_passes(reply: Reply) -> None:
    assert told(checks.text_check({"p": reply}))[0] is Result.PASSED


def test_one_prompt_of_garbage_is_enough_to_fail() -> None:
    replies = {"a": Reply(" Paris and so on"), "b": Reply("!!!!!!!!!!!!")}
    assert told(checks.text_check(replies))[0] is Result.FAILED


def test_random_weights_need_not_write_text_but_something() -> None:
    noise = {"p": Reply("\ufffd" * 9, (7,) * 9)}
    assert told(checks.text_check(noise, any_text=True))[0] is Result.CANNOT_TELL
    assert told(checks.text_check({"p": Reply("")}, any_text=True))[0] is Result.FAILED


def test_speculation_that_accepts_nothing_fails() -> None:
    on = Served(speculation="EAGLE", accept_length=1.0, accept_source="/metrics")
    result, say = told(checks.accept_check(on))
    assert result is Result.FAILED
    assert say == (
        "speculation (EAGLE) accepts no draft token: accept length 1.00, as /metrics says"
    )
    assert told(checks.accept_check(Served(speculation="EAGLE", accept_length=1.4)))[0] is (
        Result.PASSED
    )


def test_an_accept_length_that_nobody_tells_cannot_be_told() -> None:
    assert told(checks.accept_check(Served(speculation="EAGLE")))[0] is Result.CANNOT_TELL
    assert checks.accept_check(Served(speculation="")) is None
    assert checks.accept_check(Served()) is None, "nothing says that it speculates"


def test_a_pool_smaller_than_the_context_fails() -> None:
    result, say = told(checks.pool_check(Served(pool_tokens=64, context=512)))
    assert result is Result.FAILED
    assert say == "the KV pool of 64 tokens is smaller than the context of 512"
    assert told(checks.pool_check(Served(pool_tokens=512, context=512)))[0] is Result.PASSED
    result, say = told(checks.pool_check(Served(pool_tokens=512)))
    assert (result, say) == (Result.CANNOT_TELL, "nothing says the context length")


def test_what_the_engine_resolved_otherwise_is_named() -> None:
    asked = Config.of(
        {"page-size": "16", "mem-fraction-static": "0.80", "trust-remote-code": True, "port": "1"}
    )
    same = {"page_size": 16, "mem_fraction_static": 0.8, "trust_remote_code": True, "port": 9}
    assert told(checks.config_check(asked, Served(resolved=same), TABLE))[0] is Result.PASSED
    other = {**same, "page_size": 1, "trust_remote_code": False}
    result, say = told(checks.config_check(asked, Served(resolved=other), TABLE))
    assert result is Result.NOTED
    assert say == (
        "the engine runs with other values: page-size 16 -> 1; trust-remote-code on -> False"
    )
    assert told(checks.config_check(asked, Served(), TABLE))[0] is Result.CANNOT_TELL
    other_engine = Served(resolved={"version": "0.11.0"})
    assert told(checks.config_check(asked, other_engine, TABLE))[0] is Result.CANNOT_TELL


def test_an_error_under_load_fails_and_says_which() -> None:
    level = level_of(
        4, [Request(sent=0, arrivals=(1,), tokens=1), Request(sent=0, error="HTTP 503: full")], 2.0
    )
    result, say = told(checks.load_check([level], [4]))
    assert result is Result.FAILED
    assert say == "at 4 requests at once 1 of 2 failed: HTTP 503: full"
    assert checks.load_check([], []) is None
    assert told(checks.load_check([], [4]))[0] is Result.FAILED


def test_a_level_that_answers_nothing_in_time_fails() -> None:
    level = level_of(2, [Request(sent=0, cut=True), Request(sent=0, cut=True)], 5.0)
    assert told(checks.load_check([level], [2])) == (
        Result.FAILED,
        "at 2 requests at once none was answered within 5.0 s",
    )


def test_a_client_that_is_busy_itself_is_told() -> None:
    requests = [Request(sent=0, arrivals=(1.0,), tokens=1)]
    level = level_of(1, requests, 2.0, client_share=0.93)
    result, say = told(checks.load_check([level], [1]))
    assert result is Result.NOTED
    assert "the client used 93% of a core" in say


def test_what_is_left_of_a_launch_fails() -> None:
    stuck = checks.stop_check(exit_code=0, seconds=2, stuck=["process 7 (state D)"], removed=0)
    assert stuck.result is Result.FAILED
    killed = checks.stop_check(exit_code=-9, seconds=30, stuck=[], removed=2)
    assert killed.result is Result.NOTED
    clean = checks.stop_check(exit_code=0, seconds=5.4, stuck=[], removed=6)
    assert told(clean) == (
        Result.PASSED,
        "it ended with exit code 0 after 5.4 s of SIGTERM; nothing of it is left; 6 files that it "
        "left were removed",
    )


def test_figures_of_a_level() -> None:
    requests = [
        Request(sent=0.0, arrivals=(0.5, 0.6, 0.8), ended=0.8, tokens=3),
        Request(sent=0.1, arrivals=(0.4, 0.5), ended=0.5, tokens=2),
        Request(sent=0.2, cut=True),
    ]
    level = level_of(2, requests, 2.0)
    assert (level.answered, level.cut, level.failed, level.tokens) == (2, 1, 0, 5)
    assert level.tokens_per_s == 2.5
    assert (level.ttft_p50, level.ttft_p99) == (0.3, 0.5)
    assert (level.itl_p50, level.itl_p99) == (0.1, 0.2)


def test_a_simulated_level_measures_nothing() -> None:
    requests = [Request(sent=0.0, arrivals=(0.5, 0.6), tokens=2)]
    level = level_of(1, requests, 2.0, measured=False)
    assert level.answered == 1
    assert {level.tokens_per_s, level.ttft_p50, level.itl_p99} == {None}


def test_a_quantile_is_one_of_the_values() -> None:
    assert quantile([], 0.5) is None
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([float(n) for n in range(1, 101)], 0.99) == 99.0
    assert quantile([1.0], 0.99) == 1.0


INFO = {
    "version": "0.5.23",
    "max_total_num_tokens": 4096,
    "speculative_algorithm": "EAGLE",
    "internal_states": [{"avg_spec_accept_length": 2.5}],
}


def test_the_newest_source_of_the_accept_length_goes_first() -> None:
    notes = [
        {"completion_tokens": 24, "spec_verify_ct": 12},
        {"completion_tokens": 24, "spec_verify_ct": 24},
    ]
    metrics = '# HELP x\nsglang:spec_accept_length{model_name="m"} 1.75\n'
    log = "[t TP0] Decode batch, accept len: 1.20, accept rate: 0.1\n... accept len: 1.40, x"
    everything = read_served(info=INFO, notes=notes, metrics=metrics, log=log)
    assert (everything.accept_length, everything.speculation) == (2.5, "EAGLE")
    assert everything.accept_source == "/server_info (avg_spec_accept_length)"
    assert read_served(notes=notes, metrics=metrics, log=log).accept_length == 48 / 36
    assert read_served(metrics=metrics, log=log).accept_length == 1.75
    assert read_served(log=log).accept_length == pytest.approx(1.3)
    assert read_served(notes=[{"spec_accept_length": 1.5}]).accept_length == 1.5
    assert read_served(metrics="sglang:spec_accept_length 0.0\n").accept_length is None


def test_pool_and_context_from_whatever_says_them() -> None:
    log = (
        "[t DP0 TP0] max_total_num_tokens=900, context_len=512, x\n"
        "[t DP1 TP0] max_total_num_tokens=800, context_len=512, x\n"
    )
    assert (read_served(log=log).pool_tokens, read_served(log=log).context) == (800, 512)
    models = {"data": [{"id": "m", "max_model_len": 512}]}
    old = read_served(info=INFO, models=models)
    assert (old.pool_tokens, old.context) == (4096, 512)
    vllm = read_served(log="INFO GPU KV cache size: 163,840 tokens", models=models)
    assert vllm.pool_tokens == 163840
    assert read_served().pool_tokens is None


def test_what_the_engine_resolved_is_read_from_its_log_or_its_info() -> None:
    log = "[t] server_args={'page_size': 16, 'load_format': 'dummy', 'speculative_algorithm': None}"
    served = read_served(log=log)
    assert served.resolved["page_size"] == 16
    assert served.random_weights
    assert served.speculation == ""
    assert read_served(info=INFO).resolved["speculative_algorithm"] == "EAGLE"
    assert read_served().speculation is None


UP = Start(folder="confirmation/001", ready_s=3.0)
DOWN = Start(folder="confirmation/002", ready_s=None, reason="it died", cause="device-busy")


def confirmation(*starts: Start, failed: bool = False) -> Confirmation:
    result = Result.FAILED if failed else Result.CANNOT_TELL
    checked = (Check(name="kv-pool", result=result, say="too small"),)
    return Confirmation(
        config=Config(),
        ready_s=3.0,
        exchanges=(Exchange(prompt="Hi", answers=("yo", "yo")),),
        checks=checked,
        starts=starts,
        reason=why_not(checked, starts),
    )


def test_it_works_if_all_starts_came_up_and_no_check_failed() -> None:
    shown = confirmation(UP, UP)
    assert (shown.confirmed, shown.flaky, shown.count, shown.reason) == (True, False, "2/2", "")


def test_a_failed_check_is_the_reason() -> None:
    shown = confirmation(UP, failed=True)
    assert (shown.confirmed, shown.reason) == (False, "too small")


def test_a_start_that_fails_among_others_is_flaky_and_counted() -> None:
    shown = confirmation(UP, DOWN, UP)
    assert (shown.confirmed, shown.flaky, shown.count) == (False, True, "2/3")
    assert shown.reason == "flaky: 2 of 3 starts came up; start 2: it died"


def test_starts_that_all_fail_are_not_flaky() -> None:
    shown = confirmation(DOWN, DOWN)
    assert (shown.confirmed, shown.flaky, shown.count) == (False, False, "0/2")
    assert shown.reason == "it died (so did all 2 starts)"


def test_a_level_counts_its_failures() -> None:
    level = Level(
        concurrency=1, requests=5, answered=2, cut=0, seconds=1, tokens=2,
        errors=(("a", 2), ("b", 1)),
    )  # fmt: skip
    assert level.failed == 3

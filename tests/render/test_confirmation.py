"""A confirmation as document and as text: "works" only where it is shown."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from triage.core.config import Config
from triage.core.gpu_symptoms import GpuReport, Sample, read_symptoms
from triage.core.handover.confirmation import Check, Confirmation, Exchange, Result, Start
from triage.core.handover.load import Level
from triage.render.confirmation import (
    confirmation_document,
    confirmation_of,
    confirmation_text,
)

AGREED = (Exchange(prompt="Hi", answers=("yo", "yo")),)
READ = [Sample(gpu=0, at=n / 5, utilisation=1.0, power_w=360, power_cap_w=1100) for n in range(99)]
WHOLE = Confirmation(
    config=Config.of({"tp-size": "8", "z": ("1", "2"), "b": True}, {"A": "1"}),
    ready_s=33.0,
    exchanges=AGREED,
    folder="confirmation/001",
    items=frozenset({"z"}),
    checks=(Check(name="kv-pool", result=Result.CANNOT_TELL, say="nothing says it"),),
    starts=(
        Start(folder="confirmation/001", ready_s=33.0),
        Start(folder="confirmation/002", ready_s=31.0),
    ),
    levels=(
        Level(
            concurrency=64, requests=64, answered=64, cut=0, seconds=9.5, tokens=4096,
            tokens_per_s=431.2, ttft_p50=0.2, ttft_p99=0.9, itl_p50=0.011, itl_p99=0.05,
            client_share=0.2,
        ),
    ),
    gpus=GpuReport(
        gpus=("GPU 0 B300",), samples=99, seconds=19.6, readings=read_symptoms(READ), share=0.004
    ),
    date="2026-11-30T10:00:00+00:00",
    versions=(("sglang", "0.5.23"), ("NVIDIA driver", "580.1")),
    command="python -m sglang.launch_server --tp-size 8",
)  # fmt: skip


def test_it_is_read_back_as_it_was() -> None:
    for shown in (
        WHOLE,
        Confirmation(config=Config(), ready_s=None, reason="it died", items=frozenset({"z"})),
    ):
        assert confirmation_of(json.loads(json.dumps(confirmation_document(shown)))) == shown


def test_a_document_of_an_earlier_version_is_read() -> None:
    document = confirmation_document(replace(WHOLE, checks=(), starts=(), levels=(), gpus=None))
    for new in ("checks", "starts", "load", "gpus", "date", "versions", "command", "count"):
        del document[new]
    shown = confirmation_of(document)
    assert shown.confirmed
    assert shown.count == "1/1"


def test_the_document_says_what_failed() -> None:
    document = confirmation_document(replace(WHOLE, reason="it died"))
    assert (document["confirmed"], document["flaky"], document["reason"]) == (
        False, False, "it died",
    )  # fmt: skip
    assert document["count"] == {"up": 2, "starts": 2}


def test_works_comes_with_date_versions_and_count() -> None:
    lines = confirmation_text(WHOLE).splitlines()
    assert " ".join(line.strip() for line in lines[:2]) == (
        "works: 2/2 starts, ready after 33 s (2026-11-30T10:00:00+00:00, sglang 0.5.23, "
        "NVIDIA driver 580.1)"
    )
    text = "\n".join(lines)
    assert "  cannot tell  kv-pool: nothing says it" in text
    assert "64/64" in text
    assert "431.2" in text
    assert "0.200/0.900" in text
    assert "11.0/50.0" in text
    assert "bottleneck: not shown" in text
    assert "hbm: cannot tell" in text
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (
            Confirmation(config=Config(), ready_s=33.0, exchanges=AGREED),
            "works: 1/1 starts, ready after 33 s\n  'Hi' -> 'yo'",
        ),
        (
            Confirmation(config=Config(), ready_s=33.0, exchanges=AGREED, simulated=True),
            "simulated: confirmed: 1/1 simulated starts, ready after 33 s\n  'Hi' -> 'yo'",
        ),
        (
            Confirmation(
                config=Config(),
                ready_s=33.0,
                exchanges=(Exchange(prompt="Hi", answers=("yo", "no")),),
                simulated=True,
            ),
            "simulated: not confirmed: the two answers at temperature 0 do not agree",
        ),
        (
            Confirmation(config=Config(), ready_s=None, reason="it died in weight-load"),
            "not confirmed: it died in weight-load",
        ),
        (
            Confirmation(
                config=Config(),
                ready_s=3.0,
                exchanges=AGREED,
                reason="flaky: 1 of 2 starts came up; start 2: it died",
                starts=(
                    Start(folder="c/001", ready_s=3.0),
                    Start(folder="c/002", ready_s=None, reason="it died"),
                ),
            ),
            "flaky: 1 of 2 starts came up; start 2: it died\n"
            "  start 1: up after 3.0 s\n  start 2: it died (c/002)",
        ),
    ],
)
def test_it_is_said_in_a_line(shown: Confirmation, text: str) -> None:
    assert confirmation_text(shown) == text


def test_works_is_never_said_of_what_is_not_confirmed() -> None:
    for shown in (
        replace(WHOLE, reason="no"),
        replace(WHOLE, ready_s=None),
        replace(WHOLE, exchanges=()),
        replace(WHOLE, checks=(Check(name="text", result=Result.FAILED, say="garbage"),)),
        replace(WHOLE, starts=(Start(folder="f", ready_s=None, reason="it died"),)),
        replace(WHOLE, simulated=True),
    ):
        assert "works" not in confirmation_text(shown)

"""What a runbook says of a confirmation: its checks, its load, and what the GPUs showed."""

from __future__ import annotations

from dataclasses import replace

from triage.core.config import Config
from triage.core.gpu_symptoms import GpuReport, Sample, read_symptoms
from triage.core.handover.confirmation import Check, Confirmation, Exchange, Result, Start
from triage.core.handover.document import Paragraph, Table
from triage.core.handover.load import Level
from triage.core.handover.proof import checked, measured

LEVEL = Level(
    concurrency=64, requests=64, answered=64, cut=0, seconds=9.5, tokens=4096, tokens_per_s=431.2,
    ttft_p50=0.2, ttft_p99=0.9, itl_p50=0.011, itl_p99=0.05,
)  # fmt: skip
READ = [Sample(gpu=0, at=n / 5, utilisation=1.0, power_w=360, power_cap_w=1100) for n in range(99)]
SHOWN = Confirmation(
    config=Config(),
    ready_s=33.0,
    exchanges=(Exchange(prompt="Hi", answers=("yo", "yo")),),
    checks=(Check(name="kv-pool", result=Result.PASSED, say="large enough"),),
    starts=(Start(folder="c/001", ready_s=33.0), Start(folder="c/002", ready_s=31.0)),
    levels=(LEVEL,),
    gpus=GpuReport(gpus=("GPU 0",), samples=99, seconds=19.6, readings=read_symptoms(READ)),
    date="2026-11-30T10:00:00+00:00",
    versions=(("sglang", "0.5.23"),),
)


def test_it_says_when_with_what_and_how_often() -> None:
    first = next(iter(checked(SHOWN)))
    assert first == Paragraph(
        "Launched 2026-11-30T10:00:00+00:00 with sglang 0.5.23; 2/2 starts came up and answered."
    )


def test_starts_checks_and_load_are_tables() -> None:
    heads = {block.head[0]: block.rows for block in checked(SHOWN) if isinstance(block, Table)}
    assert heads["check"] == (("kv-pool", "passed", "large enough"),)
    assert heads["at once"] == (("64", "64 of 64", "0", "431.2", "0.200 / 0.900", "11.0 / 50.0"),)
    assert [row[0] for row in heads["start"]] == ["1", "2"]
    assert "hbm" in {row[0] for row in heads["regime"]}


def test_the_bottleneck_is_not_shown_by_utilisation_and_power() -> None:
    said = [b.text for b in checked(SHOWN) if isinstance(b, Paragraph)]
    assert any(text.startswith("The bottleneck under this load: not shown (") for text in said)


def test_what_was_not_measured_is_said_so() -> None:
    simulated = replace(LEVEL, tokens_per_s=None, ttft_p50=None, itl_p50=None)
    rows = [b.rows for b in checked(replace(SHOWN, levels=(simulated,))) if isinstance(b, Table)]
    assert ("64", "64 of 64", "0", *("not measured",) * 3) in [row for t in rows for row in t]
    assert measured(replace(SHOWN, levels=(simulated,))) == ""
    assert measured(SHOWN) == "64"
    assert measured(replace(SHOWN, reason="it died")) == ""
    assert measured(None) == ""


def test_a_confirmation_of_an_earlier_version_adds_nothing() -> None:
    old = Confirmation(config=Config(), ready_s=3.0, exchanges=SHOWN.exchanges)
    assert list(checked(old)) == []

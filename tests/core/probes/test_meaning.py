"""What outcomes of probes mean, and what they change of a diagnosis."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from triage.core.causes import Cause
from triage.core.config import SetFlag, UnsetFlag
from triage.core.diagnosis import Advice, Alternative, Diagnosis
from triage.core.probes.catalogue import PROBES, named
from triage.core.probes.meaning import explained
from triage.core.probes.results import Experiment, ProbeResult, result_of
from triage.core.probes.revise import probes_for, revise
from triage.knowledge import load_causes

ALLOC = "CUBLAS_STATUS_ALLOC_FAILED"


def done(probe: str, *experiments: Experiment, device: str = "cuda") -> ProbeResult:
    return explained(
        ProbeResult(probe=probe, outcome="done", device=device, experiments=experiments)
    )


def product(mib: int, outcome: str = "passed", mode: str = "eager", status: str = "") -> Experiment:
    return Experiment(
        name=f"bf16 {mode} {mib} MiB", outcome=outcome, status=status,
        given={"dtype": "bf16", "mode": mode, "free_mib": mib},
    )  # fmt: skip


def effects(result: ProbeResult) -> dict[str, str]:
    return {finding.cause: finding.effect for finding in result.findings}


def test_products_that_work_alone_accuse_an_earlier_kernel() -> None:
    result = done("mla-absorb-bmm", *(product(mib) for mib in (1024, 64, 16)))
    assert "down to 16 MiB free" in result.meaning[0]
    assert "an earlier kernel broke the context" in result.meaning[0]
    assert effects(result)["cublas-mla-absorb-bmm"] == "refutes"
    assert effects(result)["graph-capture-illegal-memory"] == "supports"
    assert [flag for flag, _ in result.rules_out] == ["mem-fraction-static"]


def test_products_that_fail_short_of_memory_accuse_the_memory() -> None:
    result = done(
        "mla-absorb-bmm", product(1024), product(64), product(32, "failed", status=ALLOC),
        product(16, "failed", status=ALLOC),
    )  # fmt: skip
    assert f"with 32 MiB free or less ({ALLOC})" in result.meaning[0]
    assert result.rules_out == (), "more free memory is what would help"
    assert effects(result) == {"cublas-mla-absorb-bmm": "supports"}


def test_products_that_always_fail_accuse_the_library_and_no_memory() -> None:
    result = done(
        "mla-absorb-bmm",
        *(product(mib, "failed", status="CUBLAS_STATUS_NOT_SUPPORTED") for mib in (1024, 16)),
    )
    assert "even with 1024 MiB free (CUBLAS_STATUS_NOT_SUPPORTED)" in result.meaning[0]
    assert [flag for flag, _ in result.rules_out] == ["mem-fraction-static"]


def test_products_that_fail_in_captures_only_accuse_the_graph() -> None:
    result = done(
        "mla-absorb-bmm", product(1024), product(1024, "failed", "captured", "RuntimeError")
    )
    assert any("only in a capture" in said for said in result.meaning)


@pytest.mark.parametrize(
    "probe", [p.name for p in PROBES if p.name not in ("rendezvous", "allreduce")]
)
def test_on_the_cpu_a_probe_says_nothing_about_a_gpu(probe: str) -> None:
    result = done(probe, product(16, "failed", status=ALLOC), device="cpu")
    assert result.findings == ()
    assert result.rules_out == ()
    assert "says nothing about a GPU" in result.meaning[0]


@pytest.mark.parametrize("probe", [p.name for p in PROBES])
@pytest.mark.parametrize("outcome", ["crashed", "hung", "killed", "unavailable"])
def test_every_ending_of_every_probe_has_a_meaning_and_accuses_nobody(
    probe: str, outcome: str
) -> None:
    result = explained(ProbeResult(probe=probe, outcome=outcome, reason="because"))
    assert len(result.meaning) == 1
    assert result.findings == ()


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("probe", [p.name for p in PROBES])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["passed", "failed", "crashed", "hung", "skipped"]), st.integers(0, 6)
        ),
        max_size=8,
    )
)
def test_any_mixture_of_outcomes_has_a_meaning(probe: str, outcomes: list[tuple[str, int]]) -> None:
    names = (
        "warm",
        "cold",
        "attribute",
        "object over all GPUs",
        "nccl, NVLS 0",
        "nccl, NVLS 1",
        "store",
    )
    made = [
        Experiment(name=names[i], outcome=o, status=ALLOC, given={"free_mib": 16 * i, "layout": "TP"})
        for o, i in outcomes
    ]  # fmt: skip
    result = done(probe, *made)
    assert result.meaning
    assert all(said.endswith(".") or said.endswith("kernel.") for said in result.meaning)


def test_findings_are_about_causes_that_exist() -> None:
    known = {cause.id for cause in load_causes()}
    results = [
        done("mla-absorb-bmm", product(1024)),
        done("mla-absorb-bmm", product(1024, "failed", status=ALLOC)),
        done("graph-capture", Experiment(name="warm", outcome="passed"), Experiment(name="cold", outcome="failed")),
        done("cublas-handle", Experiment(name="in a capture", outcome="failed")),
        done("multicast", Experiment(name="attribute", outcome="passed", facts={"supported": [1, 0]})),
        done("allreduce", Experiment(name="gloo", outcome="passed"), Experiment(name="nccl, NVLS 0", outcome="passed"),
             Experiment(name="nccl, NVLS 1", outcome="hung"), Experiment(name="symmetric memory", outcome="hung")),
        done("rendezvous", Experiment(name="own name", outcome="passed", facts={"loopback": True}),
             Experiment(name="port", outcome="failed"), Experiment(name="store", outcome="failed")),
    ]  # fmt: skip
    named_causes = {finding.cause for result in results for finding in result.findings}
    assert len(named_causes) > 10
    assert named_causes <= known


def test_multicast_that_is_refused_accuses_the_fabric_and_no_flag() -> None:
    result = done(
        "multicast",
        Experiment(name="attribute", outcome="passed", facts={"supported": [1, 1]}),
        Experiment(name="fabric state", outcome="passed", facts={"states": ["in progress"]}),
        Experiment(
            name="object over all GPUs", outcome="failed",
            detail="DriverError: cuMulticastAddDevice: 401 CUDA_ERROR_ILLEGAL_STATE",
        ),
    )  # fmt: skip
    assert "401 CUDA_ERROR_ILLEGAL_STATE" in result.meaning[0]
    assert result.meaning[1] == "State of the fabric: in progress."
    assert effects(result)["nccl-nvls-multicast-bind"] == "supports"


def diagnosis(**rest: Any) -> Diagnosis:
    usual: dict[str, Any] = {
        "source": "x.log", "outcome": "failed", "cause": "cublas-mla-absorb-bmm",
        "confidence": "high", "also": (Alternative(cause="graph-capture-illegal-memory", confidence="low"),),
        "remedies": (
            Advice(say="less memory for the cache", changes=(SetFlag("mem-fraction-static", "0.8"),),
                   disposition="lossy", cost="", evidence=""),
            Advice(say="without EP", changes=(UnsetFlag("ep-size"),), disposition="lossy", cost="", evidence=""),
            Advice(say="call somebody", changes=(), disposition="manual", cost="", evidence=""),
        ),
    }  # fmt: skip
    return Diagnosis(**{**usual, **rest})


def test_a_probe_that_exonerates_the_cause_lowers_it_and_raises_the_other() -> None:
    revision = revise(diagnosis(), [done("mla-absorb-bmm", product(1024), product(16))])
    assert revision.diagnosis.confidence == "medium"
    assert revision.diagnosis.also[0].confidence == "medium"
    assert [r.say for r in revision.diagnosis.remedies] == ["without EP", "call somebody"]
    assert revision.diagnosis.cause == "cublas-mla-absorb-bmm", "the log says what it says"
    assert any("cannot help: less memory for the cache" in said for said in revision.changed)
    assert any(
        "confidence high -> medium, as mla-absorb-bmm passes alone" in s for s in revision.changed
    )


def test_what_nothing_was_learnt_of_stays() -> None:
    same = diagnosis()
    revision = revise(same, [done("mla-absorb-bmm", product(16), device="cpu")])
    assert revision.diagnosis == same
    assert revision.changed == ()


def test_confidence_has_ends() -> None:
    wrong = done("mla-absorb-bmm", product(1024, "failed", status=ALLOC))
    assert revise(diagnosis(), [wrong]).diagnosis.confidence == "high"
    right = [done("mla-absorb-bmm", product(1024))]
    low = revise(diagnosis(confidence="low"), right).diagnosis
    assert low.confidence == "low"


def test_the_probes_of_a_cause_come_cheapest_first() -> None:
    causes = [
        Cause(id="a", title="", probe=("mla-absorb-bmm", "graph-capture"), confused_with=("b",)),
        Cause(id="b", title="", probe=("multicast",)),
        Cause(id="c", title="", probe=("allreduce",)),
    ]
    found = probes_for(diagnosis(cause="a", also=()), causes)
    assert [p.name for p in found] == ["multicast", "graph-capture", "mla-absorb-bmm"]
    assert probes_for(diagnosis(cause=None, also=()), causes) == ()


def test_probes_that_causes_name_exist_and_nearly_every_probe_is_named() -> None:
    used = {name for cause in load_causes() for name in cause.probe}
    assert all(named(name) for name in used)
    assert {p.name for p in PROBES} - used == {"moe-kernel"}, "which triage advise names"


def lines(*events: Mapping[str, object]) -> bytes:
    return b"".join(b"triage-probe " + json.dumps(e).encode() + b"\n" for e in events)


START = {"event": "start", "device": "cpu", "versions": {"torch": "2"}}
ENDED: dict[str, Any] = {"exit_code": 0, "by": "", "silent": False, "seconds": 1.0}


@pytest.mark.parametrize(
    ("how", "outcome"),
    [
        ({}, "done"), ({"exit_code": 1}, "crashed"), ({"exit_code": -9}, "killed"),
        ({"exit_code": None, "silent": True}, "hung"),
        ({"exit_code": None, "by": "the guard process was killed"}, "killed"),
    ],
)  # fmt: skip
def test_however_a_process_ends_there_is_a_result(how: dict[str, Any], outcome: str) -> None:
    events = [START] if how else [START, {"event": "end"}]
    assert result_of("x", lines(*events), **{**ENDED, **how}).outcome == outcome


@given(st.binary(max_size=400))
def test_whatever_a_process_prints_there_is_a_result(raw: bytes) -> None:
    result = result_of("multicast", lines(START) + raw + b"\n" + b"triage-probe {" + raw, **ENDED)
    assert result.outcome in ("crashed", "done", "unavailable")


def test_odd_events_are_read_as_far_as_they_go() -> None:
    odd = lines({"event": "experiment", "name": 3, "facts": [1], "seconds": "x"}, {"event": "end"})
    result = result_of("x", odd + b"triage-probe [1]\nand more", **ENDED)
    assert result.experiments[0].name == "3"
    assert result.experiments[0].facts == {}
    assert result.output == "triage-probe [1]\nand more"


def test_the_page_has_a_row_for_every_probe() -> None:
    page = (Path(__file__).parents[3] / "docs/probes.md").read_text()
    assert re.findall(r"^\| `([a-z-]+)` \|", page, re.M) == [p.name for p in PROBES]


@pytest.mark.parametrize(("seconds", "effect"), [(2.0, "supports"), (15.0, None)])
def test_a_hang_counts_only_if_the_limit_was_long_enough(
    seconds: float, effect: str | None
) -> None:
    result = done(
        "allreduce",
        Experiment(name="nccl, NVLS 0", outcome="passed", seconds=seconds),
        Experiment(name="nccl, NVLS 1", outcome="hung", seconds=20.0),
    )
    assert effects(result).get("hang-nvls-bind") == effect
    assert any("longer --limit" in said for said in result.meaning) == (effect is None)

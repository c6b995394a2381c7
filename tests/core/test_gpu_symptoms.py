"""The table of GPU symptoms: what readings show, do not show, and cannot tell."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.core.gpu_symptoms import (
    BOTTLENECKS,
    Answer,
    GpuReport,
    Sample,
    judge_claim,
    read_symptoms,
)

CAP_W = 1100.0


def steady(seconds: float = 20.0, **values: float | int | None) -> list[Sample]:
    """Two GPUs read five times a second, all alike."""
    one = Sample(gpu=0, at=0.0, power_cap_w=CAP_W, max_clock_mhz=1900.0, **values)  # type: ignore[arg-type]
    count = int(seconds * 5) + 1
    return [replace(one, gpu=gpu, at=n / 5) for n in range(count) for gpu in (0, 1)]


def answers(samples: list[Sample], **more: object) -> dict[str, Answer]:
    return {r.regime: r.answer for r in read_symptoms(samples, **more)}  # type: ignore[arg-type]


def test_the_founding_claim_is_not_shown() -> None:
    """ "HBM-bandwidth-bound: 100 % utilisation, 360 W" of a GPU of 1100 W."""
    readings = read_symptoms(steady(utilisation=1.0, power_w=360.0))
    claim = judge_claim("hbm", readings)
    assert claim.answer is Answer.NOT_SHOWN
    assert claim.why == (
        "utilisation 100% and power 33% of the cap fit every regime: they separate nothing"
    )
    assert "DRAM_ACTIVE" in claim.needs
    report = GpuReport(readings=readings, samples=10)
    assert report.bottleneck.startswith("not shown (would need DRAM and tensor activity")


@given(
    utilisation=st.floats(0, 1),
    power=st.floats(1, CAP_W),
    tokens=st.none() | st.integers(1, 10**6),
)
def test_utilisation_and_power_alone_never_show_a_bottleneck(
    utilisation: float, power: float, tokens: int | None
) -> None:
    found = answers(steady(utilisation=utilisation, power_w=power), tokens=tokens)
    assert {found[name] for name in BOTTLENECKS} == {Answer.CANNOT_TELL}
    assert found["hung"] is not Answer.SHOWN


FULL = {"utilisation": 1.0, "sm_active": 0.95, "gr_active": 0.99, "reasons": 0}


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({"dram": 0.72, "tensor": 0.1, "power_w": 400}, {"hbm"}),
        ({"dram": 0.55, "tensor": 0.1, "power_w": 400}, set()),  # heavy, not at its limit
        ({"dram": 0.65, "tensor": 0.5, "power_w": 600}, set()),
        ({"dram": 0.3, "tensor": 0.6, "power_w": 1000}, {"compute"}),
        ({"dram": 0.3, "tensor": 0.6, "power_w": 700}, set()),  # not near the cap
        ({"dram": 0.3, "tensor": 0.1, "power_w": 360}, {"kernel"}),
        ({"dram": 0.3, "tensor": 0.1, "power_w": 900}, set()),
        ({"dram": 0.05, "tensor": 0.02, "power_w": 300}, {"comms"}),
        ({"dram": 0.3, "tensor": 0.1, "power_w": 900, "nvlink": 0.5}, {"comms"}),
    ],
)
def test_a_regime_is_shown_by_its_signature(values: dict[str, float], shown: set[str]) -> None:
    readings = read_symptoms(steady(**FULL, **values), tokens=5)
    assert {r.regime for r in readings if r.answer is Answer.SHOWN} == shown
    assert GpuReport(readings=readings).bottleneck == (
        next(iter(shown)) if shown else "not shown (no regime's signature is met)"
    )


def test_launch_bound_needs_the_cpu_too() -> None:
    gaps = steady(sm_active=0.3, gr_active=0.6, dram=0.1, tensor=0.05, power_w=300)
    assert answers(gaps)["launch"] is Answer.CANNOT_TELL
    assert answers(gaps, busiest_core=0.4)["launch"] is Answer.NOT_SHOWN
    assert answers(gaps, busiest_core=0.99)["launch"] is Answer.SHOWN
    assert answers(steady(**FULL), busiest_core=0.99)["launch"] is Answer.NOT_SHOWN


def test_a_slowdown_in_a_tenth_of_the_samples_is_shown() -> None:
    samples = steady(reasons=0, sm_clock_mhz=1900, power_w=500)
    few = [replace(s, reasons=0x40) if n % 20 == 0 else s for n, s in enumerate(samples)]
    more = [replace(s, reasons=0x40) if n % 8 == 0 else s for n, s in enumerate(samples)]
    assert answers(few)["power-or-thermal"] is Answer.NOT_SHOWN
    assert answers(more)["power-or-thermal"] is Answer.SHOWN
    slow = [replace(s, sm_clock_mhz=1500.0) for s in samples]
    assert answers(slow)["power-or-thermal"] is Answer.SHOWN
    idle = [replace(s, sm_clock_mhz=300.0, reasons=0x1) for s in samples]
    assert answers(idle)["power-or-thermal"] is Answer.NOT_SHOWN, "an idle GPU is slow by right"
    assert answers(idle)["idle"] is Answer.SHOWN
    assert answers(steady(power_w=500))["power-or-thermal"] is Answer.CANNOT_TELL


def test_hung_is_shown_only_with_all_of_it() -> None:
    hung = steady(40, utilisation=1.0, power_w=220.0, dram=0.0)
    assert answers(hung, tokens=0)["hung"] is Answer.SHOWN
    assert answers(hung, tokens=3)["hung"] is Answer.NOT_SHOWN
    assert answers(hung)["hung"] is Answer.CANNOT_TELL
    assert answers(steady(20, utilisation=1.0, power_w=220.0), tokens=0)["hung"] is (
        Answer.CANNOT_TELL
    )
    assert answers(steady(40, utilisation=1.0, power_w=220.0), tokens=0)["hung"] is (
        Answer.CANNOT_TELL
    ), "DRAM was not read"
    uneven = [replace(s, power_w=220.0 + 60 * (n % 2)) for n, s in enumerate(hung)]
    assert answers(uneven, tokens=0)["hung"] is Answer.NOT_SHOWN


def test_too_short_a_reading_shows_nothing() -> None:
    found = answers(steady(5, dram=0.9, tensor=0.0, **FULL))
    assert set(found.values()) == {Answer.CANNOT_TELL}
    assert set(answers([]).values()) == {Answer.CANNOT_TELL}


def test_a_claim_that_was_never_read_is_not_shown() -> None:
    assert judge_claim("hbm", ()).answer is Answer.NOT_SHOWN
    shown = read_symptoms(steady(dram=0.8, tensor=0.1, **FULL))
    assert judge_claim("hbm", shown).answer is Answer.SHOWN

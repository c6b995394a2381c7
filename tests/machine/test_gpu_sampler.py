"""The sampler of the GPUs, against a stand-in for NVML's Python module."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from fake_gpus import FakeGpus

from triage.core.gpu_symptoms import Answer, judge_claim, read_symptoms
from triage.machine.sampler import Sampler, driver_version


class NotSupportedError(Exception):
    value = 3


def nvml(*, gpm: bool = True, uses: dict[int, list[int]] | None = None) -> Any:
    """A module with two GPUs; with `gpm` they tell activity, else utilisation and power only."""
    uses = uses or {}

    def no(*_: object) -> None:
        raise NotSupportedError("Not Supported")

    class Metrics:
        def __init__(self) -> None:
            self.version = self.numMetrics = 0
            self.sample1 = self.sample2 = None
            self.metrics = [SimpleNamespace(metricId=0, value=0.0, nvmlReturn=0) for _ in range(8)]

    values = {1: 99.0, 2: 95.0, 5: 10.0, 10: 72.0, 60: 40_000.0, 61: 40_000.0}  # MiB/s

    def metrics_get(asked: Metrics) -> Metrics:
        for metric in asked.metrics[: asked.numMetrics]:
            metric.value = values[metric.metricId]
        return asked

    module = SimpleNamespace(
        NVMLError=NotSupportedError,
        NVMLError_FunctionNotFound=NotSupportedError,
        NVML_ERROR_LIBRARY_NOT_FOUND=12,
        NVML_ERROR_DRIVER_NOT_LOADED=9,
        NVML_ERROR_LIB_RM_VERSION_MISMATCH=18,
        NVML_CLOCK_SM=1,
        NVML_SUCCESS=0,
        NVML_GPM_METRICS_GET_VERSION=1,
        c_nvmlGpmMetricsGet_t=Metrics,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlSystemGetDriverVersion=lambda: "580.65",
        nvmlSystemGetCudaDriverVersion=lambda: 13000,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetName=lambda _: "NVIDIA B300",
        nvmlDeviceGetEnforcedPowerLimit=lambda _: 1_100_000,
        nvmlDeviceGetMaxClockInfo=lambda *_: 1900,
        nvmlDeviceGetClockInfo=lambda *_: 1890,
        nvmlDeviceGetUtilizationRates=lambda _: SimpleNamespace(gpu=100, memory=40),
        nvmlDeviceGetPowerUsage=lambda _: 360_000,
        nvmlDeviceGetCurrentClocksEventReasons=lambda _: 0,
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [
            SimpleNamespace(pid=pid) for pid in uses.get(handle, [])
        ],
        nvmlGpmQueryDeviceSupport=lambda _: SimpleNamespace(isSupportedDevice=int(gpm)),
        nvmlGpmSampleAlloc=object,
        nvmlGpmSampleGet=lambda _, sample: sample,
        nvmlGpmMetricsGet=metrics_get,
    )
    if not gpm:
        module.nvmlGpmQueryDeviceSupport = no
    return module


def sampled(
    monkeypatch: pytest.MonkeyPatch, module: Any, seconds: float = 0.3, peak: float | None = None
) -> Sampler:
    monkeypatch.setitem(sys.modules, "pynvml", module)
    with Sampler(lambda: (os.getpid(),), hertz=50, link_peak=lambda _: peak) as sampler:
        time.sleep(seconds)
    return sampler


def test_activity_is_read_where_there_is_gpm(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = sampled(monkeypatch, nvml())
    assert len(sampler.samples) >= 10
    one = sampler.samples[-1]
    assert (one.dram, one.tensor, one.sm_active, one.gr_active) == (0.72, 0.10, 0.95, 0.99)
    assert (one.utilisation, one.power_w, one.power_cap_w) == (1.0, 360.0, 1100.0)
    assert {s.gpu for s in sampler.samples} == {0, 1}
    assert sampler.names == ("GPU 0 NVIDIA B300", "GPU 1 NVIDIA B300")
    assert sampler.busiest is not None


def test_links_are_a_share_of_a_peak_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    known = sampled(monkeypatch, nvml(), 0.1, peak=900e9)
    share = 2 * 40_000 * (1 << 20) / (2 * 900e9)
    assert known.samples[-1].nvlink == pytest.approx(share)
    assert sampled(monkeypatch, nvml(), 0.1).samples[-1].nvlink is None, "the peak is not known"


def test_without_gpm_there_is_only_what_separates_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sampler = sampled(monkeypatch, nvml(gpm=False))
    assert {s.dram for s in sampler.samples} == {None}
    report = sampler.report(tokens=100)
    assert report.samples == len(sampler.samples)
    assert {r.answer for r in report.readings} == {Answer.CANNOT_TELL}


def test_only_the_gpus_of_the_launch_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = sampled(monkeypatch, nvml(uses={1: [os.getpid()], 0: [1]}), 0.1)
    assert sampler.names == ("GPU 1 NVIDIA B300",)
    assert {s.gpu for s in sampler.samples} == {1}


def test_a_machine_without_nvml_is_a_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    module = nvml()

    def missing() -> None:
        raise NotSupportedError("NVML Shared Library Not Found")

    module.nvmlInit = missing
    sampler = sampled(monkeypatch, module, 0)
    assert sampler.samples == []
    report = sampler.report(tokens=1)
    assert report.missing == (
        "NVML cannot be used here: NVML does not start: nvml shared library not found"
    )
    assert report.bottleneck == f"not shown ({report.missing})"
    assert driver_version() == ""
    module.nvmlInit = lambda: None
    assert driver_version() == "580.65"


def read(seconds: float, hertz: float = 50) -> Sampler:
    """A reading by the real pynvml, of the stand-in for the driver's library."""
    with Sampler(lambda: (os.getpid(),), hertz=hertz) as sampler:
        time.sleep(seconds)
    return sampler


def test_the_founding_reading_shows_no_bottleneck(fake_gpus: FakeGpus) -> None:
    """ "HBM-bandwidth-bound: 100 % utilisation, 360 W": what NVML says, and all that it says."""
    fake_gpus.set("all.busy=100", "all.power=360000", "all.power_limit=1100000", "all.reasons=0")
    sampler = read(0.4)
    one = sampler.samples[-1]
    assert (one.utilisation, one.power_w, one.power_cap_w, one.dram) == (1.0, 360.0, 1100.0, None)
    long = [replace(s, at=s.at * 100) for s in sampler.samples]  # as if it had lasted half a minute
    claim = judge_claim("hbm", read_symptoms(long, tokens=1000))
    assert claim.answer is Answer.NOT_SHOWN
    assert "100% and power 33% of the cap fit every regime" in claim.why
    assert sampler.report(1000).bottleneck.startswith("not shown (")


def test_the_driver_s_library_tells_which_gpus_are_the_launch_s(fake_gpus: FakeGpus) -> None:
    fake_gpus.hold(3, os.getpid(), mib=5000)
    sampler = read(0.1)
    assert sampler.names == ("GPU 3 NVIDIA B300 SXM6 AC",)
    assert driver_version() == "580.95.05"


def test_reading_eight_gpus_costs_less_than_a_hundredth_of_a_core(fake_gpus: FakeGpus) -> None:
    sampler = read(1.05, hertz=5)
    assert len(sampler.names) == 8
    assert sampler.share is not None
    assert sampler.share < 0.01

"""Samples of the GPUs of a launch under a steady load, five a second.

In:  the launch's processes. Out: Samples, names of the GPUs, the driver's version.
Not: what they mean (triage.core.gpu_symptoms), or a launch while it starts (recorder.py).

A GPU without GPM (before Hopper), or a
driver without it, leaves out what only GPM tells. A share of the NVLink peak is never
guessed: where the peak is not known, it is left out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from triage.core.gpu_symptoms import GpuReport, Sample, read_symptoms
from triage.core.machine.gpus import LostGpu
from triage.machine.gpus import NoNvmlError, open_nvml

HERTZ = 5.0
MOST = 20_000  # samples that are kept: an hour of one GPU
# NVML's ids of GPM metrics: how each is called in a Sample. Source: nvmlGpmMetricId_t.
_GPM = {1: "gr_active", 2: "sm_active", 5: "tensor", 10: "dram"}
_LINKS = (60, 61)  # all NVLinks, received and sent, in MiB/s
_MIB = 1 << 20


class Sampler(threading.Thread):
    """Reads until it is stopped; `with Sampler(pids) as sampler:` does both.

    `link_peak` gives the peak of a GPU's links, by its name, in bytes a second and direction.

    Attributes:
        missing: Why there is nothing to read, "" if there is.
        names: The GPUs that the launch uses; all visible ones if NVML tells of no process.
        samples: What was read.
        share: Of one core that the sampler used.
        busiest: Share of one core that the busiest of their threads used meanwhile.
    """

    def __init__(
        self,
        pids: Callable[[], Sequence[int]],
        *,
        hertz: float = HERTZ,
        link_peak: Callable[[str], float | None] = lambda _: None,
    ) -> None:
        super().__init__(name="triage-gpus", daemon=True)
        self.missing = ""
        self.names: tuple[str, ...] = ()
        self.samples: list[Sample] = []
        self.share: float | None = None
        self.busiest: float | None = None
        self._pids, self._link_peak = pids, link_peak
        self._period = 1 / hertz
        self._over = threading.Event()
        self._open_nvml = ExitStack()
        self._devices: list[_Device] = []
        self._began = time.monotonic()

    def __enter__(self) -> Sampler:
        self._open()
        self._began = time.monotonic()
        self._before = _cpu_times(self._pids())
        if self._devices:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self.ident is not None:
            self.join(5.0)
        seconds = time.monotonic() - self._began
        after = _cpu_times({pid for pid, _ in self._before})
        used = [time_s - self._before.get(thread, 0.0) for thread, time_s in after.items()]
        self.busiest = round(max(used) / seconds, 3) if used and seconds > 0 else None
        self._open_nvml.close()

    @property
    def reads(self) -> bool:
        """Whether there is a GPU to read."""
        return bool(self._devices)

    def report(self, tokens: int | None) -> GpuReport:
        """What the samples show; `tokens` were generated meanwhile."""
        at = [sample.at for sample in self.samples]
        return GpuReport(
            gpus=self.names,
            samples=len(self.samples),
            seconds=round(max(at) - min(at), 2) if at else 0.0,
            readings=read_symptoms(self.samples, tokens=tokens, busiest_core=self.busiest)
            if self._devices
            else (),
            missing=self.missing,
            share=self.share,
        )

    def run(self) -> None:
        """The thread: one sample of each GPU a period."""
        used = time.thread_time()
        while not self._over.wait(self._period) and len(self.samples) < MOST:
            for device in self._devices:
                self.samples.append(device.sample(time.monotonic() - self._began))
        seconds = time.monotonic() - self._began
        self.share = round((time.thread_time() - used) / seconds, 4) if seconds > 0 else None

    def _open(self) -> None:
        try:
            nvml = self._open_nvml.enter_context(open_nvml())
        except NoNvmlError as error:
            self.missing = f"NVML cannot be used here: {error.fact.reason}"
            return
        found = [
            _Device(nvml.library, number, handle, self._link_peak)
            for number, handle in nvml.handles.items()
        ]
        ours = set(self._pids())
        own = [device for device in found if device.pids() & ours]
        self._devices = own or found
        self.names = tuple(f"GPU {d.number} {d.name}" for d in self._devices)
        if not found:
            self.missing = "NVML sees no GPU" + "".join(map(_lost, nvml.lost))


def driver_version() -> str:
    """The NVIDIA driver's version, "" where there is none."""
    try:
        with open_nvml() as nvml:
            return nvml.versions()[0]
    except NoNvmlError:
        return ""


def _lost(gpu: LostGpu) -> str:
    return f"; GPU {gpu.index}: {gpu.reason}"


class _Device:
    def __init__(
        self, nvml: Any, number: int, handle: Any, link_peak: Callable[[str], float | None]
    ) -> None:
        self._nvml, self.number, self._handle = nvml, number, handle
        self.name = _text(self._try(nvml.nvmlDeviceGetName, self._handle) or "")
        self._peak = link_peak(self.name)
        cap = self._try(nvml.nvmlDeviceGetEnforcedPowerLimit, self._handle)
        self._cap_w = cap / 1000 if cap else None
        self._clock = self._try(nvml.nvmlDeviceGetMaxClockInfo, self._handle, nvml.NVML_CLOCK_SM)
        self._gpm = self._gpm_pair()

    def _try(self, call: Callable[..., Any], *words: Any) -> Any:
        """What NVML answers, None where this GPU or driver does not know it."""
        try:
            return call(*words)
        except Exception:  # noqa: BLE001  NVMLError_NotSupported, or a function not found
            return None

    def pids(self) -> set[int]:
        """The processes that use it, as far as NVML tells (in a container: none of ours)."""
        found = self._try(self._nvml.nvmlDeviceGetComputeRunningProcesses, self._handle)
        return {process.pid for process in found or ()}

    def sample(self, at: float) -> Sample:
        """One reading."""
        nvml, handle = self._nvml, self._handle
        rates = self._try(nvml.nvmlDeviceGetUtilizationRates, handle)
        power = self._try(nvml.nvmlDeviceGetPowerUsage, handle)
        reasons = getattr(
            nvml,
            "nvmlDeviceGetCurrentClocksEventReasons",
            getattr(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", None),
        )
        return Sample(
            gpu=self.number,
            at=round(at, 3),
            utilisation=rates.gpu / 100 if rates else None,
            power_w=power / 1000 if power else None,
            power_cap_w=self._cap_w,
            sm_clock_mhz=self._try(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            max_clock_mhz=self._clock,
            reasons=self._try(reasons, handle) if reasons else None,
            **self._activity(),
        )

    def _gpm_pair(self) -> list[Any]:
        """Two samples of GPM, whose difference is a reading; none where there is no GPM."""
        nvml = self._nvml
        told = self._try(nvml.nvmlGpmQueryDeviceSupport, self._handle)
        if not getattr(told, "isSupportedDevice", 0):
            return []
        pair = [self._try(nvml.nvmlGpmSampleAlloc) for _ in range(2)]
        if None in pair or self._failed(nvml.nvmlGpmSampleGet, self._handle, pair[0]):
            return []
        return pair

    def _failed(self, call: Callable[..., Any], *words: Any) -> bool:
        try:
            call(*words)
        except Exception:  # noqa: BLE001
            return True
        return False

    def _activity(self) -> dict[str, float]:
        """What GPM tells of the time since the last reading, as shares."""
        if not self._gpm or self._failed(self._nvml.nvmlGpmSampleGet, self._handle, self._gpm[1]):
            return {}
        nvml = self._nvml
        asked = nvml.c_nvmlGpmMetricsGet_t()
        asked.version = nvml.NVML_GPM_METRICS_GET_VERSION
        wanted = (*_GPM, *_LINKS)
        asked.numMetrics = len(wanted)
        asked.sample1, asked.sample2 = self._gpm
        for index, number in enumerate(wanted):
            asked.metrics[index].metricId = number
        self._gpm.reverse()
        if self._failed(nvml.nvmlGpmMetricsGet, asked):
            return {}
        told = {
            number: float(asked.metrics[index].value)
            for index, number in enumerate(wanted)
            if asked.metrics[index].nvmlReturn == nvml.NVML_SUCCESS
        }
        found = {name: told[number] / 100 for number, name in _GPM.items() if number in told}
        if self._peak and all(number in told for number in _LINKS):
            found["nvlink"] = sum(told[n] for n in _LINKS) * _MIB / (2 * self._peak)
        return found


def _cpu_times(pids: Iterable[int]) -> dict[tuple[int, int], float]:
    """Seconds of CPU that each thread of these processes has used, by process and thread."""
    import psutil

    found = {}
    for pid in pids:
        with suppress(psutil.Error):
            for thread in psutil.Process(pid).threads():
                found[pid, thread.id] = thread.user_time + thread.system_time
    return found


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)

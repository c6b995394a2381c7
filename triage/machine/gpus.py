"""GPUs through NVML, the driver's own library, by pynvml.

In:  libnvidia-ml.so.1, where there is one. Out: Nvml (open handle), Gpus, Reading, Holder.
Not: changing a setting; CUDA contexts (none is made, so nothing of a GPU is taken).

    with open_nvml() as nvml:            # raises NoNvmlError where there is no driver
        for reading in nvml.readings():  # cheap enough for ten times a second
            ...

Each call that fails makes its fact `Unavailable`; only the absence of NVML is an error.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from triage.core.machine.facts import Unavailable, known_or
from triage.core.machine.gpus import DRIVER_MISMATCH, Fabric, Gpu, Gpus, Holder, LostGpu, Reading

T = TypeVar("T")
MIB = 1 << 20
MAX_LINKS = 18
# Source: NVIDIA's nvml.h, nvmlClocksEventReason*
REASONS = {
    0x1: "idle",
    0x2: "clocks-set",
    0x4: "power-cap",
    0x8: "hardware-slowdown",
    0x10: "sync-boost",
    0x20: "thermal-slowdown",
    0x40: "hardware-thermal-slowdown",
    0x80: "power-brake",
    0x100: "display-clocks",
}
_LEFT_OUT = Unavailable("it was not asked")
_MOST_XIDS = 20
_FABRIC_STATES = ("not-supported", "not-started", "in-progress", "completed")
_HEALTH = ("not-supported", "healthy", "unhealthy", "limited")
_COMPUTE_MODES = ("shared", "exclusive-thread", "prohibited", "exclusive-process")
_VIRTUAL = {1: "passthrough", 2: "vgpu"}
_PEER = ("", "chipset", "GPU", "topology", "registry key", "not supported", "unknown")
_NVLINK = 2  # NVML_P2P_CAPS_INDEX_NVLINK
_READ = 0  # NVML_P2P_CAPS_INDEX_READ; pynvml 13 has a tuple of that name


NO_DRIVER = "no NVIDIA driver: libnvidia-ml.so.1 is not found"
_LIBRARY = "libnvidia-ml.so.1"
# NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX and _RX, of all links: KiB since the driver was loaded.
_LINK_FIELDS, _ALL_LINKS = (138, 139), 0xFFFFFFFF


def has_driver() -> bool:
    """Whether NVML's library is here; without it nothing of it is imported."""
    if "pynvml" in sys.modules:
        return True
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True


class NoNvmlError(Exception):
    """There is no NVML that answers; `fact` says why."""

    def __init__(self, fact: Unavailable) -> None:
        super().__init__(fact.reason)
        self.fact = fact


@contextmanager
def open_nvml() -> Iterator[Nvml]:
    """NVML for as long as the context lasts.

    Raises:
        NoNvmlError: no library, no driver, or versions that do not go together.
    """
    if not has_driver():
        raise NoNvmlError(Unavailable(NO_DRIVER, "nvidia-smi"))
    try:
        import pynvml
    except ImportError:
        say = "python -m pip install nvidia-ml-py"
        raise NoNvmlError(Unavailable("the package nvidia-ml-py is missing", say)) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NoNvmlError(Unavailable(_why(pynvml, error), _init_fix(pynvml, error))) from None
    made = Nvml(pynvml)
    try:
        yield made
    finally:
        made.close()
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _why(pynvml: Any, error: Any) -> str:
    match error.value:
        case pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
            return NO_DRIVER
        case pynvml.NVML_ERROR_DRIVER_NOT_LOADED:
            return "the NVIDIA kernel driver is not loaded"
        case pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
            return DRIVER_MISMATCH
        case _:
            return f"NVML does not start: {str(error).lower()}"


def _init_fix(pynvml: Any, error: Any) -> str:
    match error.value:
        case pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
            return "reboot  # the driver was updated while its old module stayed loaded"
        case pynvml.NVML_ERROR_DRIVER_NOT_LOADED:
            return "modprobe nvidia"
        case _:
            return "nvidia-smi"


class Nvml:
    """An open NVML. Handles are kept; a GPU that is lost later gives `Unavailable` facts."""

    def __init__(self, pynvml: Any) -> None:
        self._nvml = pynvml
        self._handles: dict[int, Any] = {}
        self._unlinked: set[int] = set()  # GPUs that do not count what goes over their links
        self._events: Any = None
        self.lost: tuple[LostGpu, ...] = ()
        try:
            count = int(pynvml.nvmlDeviceGetCount())
        except pynvml.NVMLError:
            count = 0
        for index in range(count):
            handle = self._ask(partial(pynvml.nvmlDeviceGetHandleByIndex, index))
            name = handle if isinstance(handle, Unavailable) else self._name(handle)
            if isinstance(name, Unavailable):
                self.lost = (*self.lost, LostGpu(index=index, reason=name.reason))
            else:
                self._handles[index] = handle

    @property
    def library(self) -> Any:
        """The Python module of NVML, for what this class does not offer."""
        return self._nvml

    @property
    def handles(self) -> dict[int, Any]:
        """GPU -> its handle, of those that answer."""
        return dict(self._handles)

    def _ask(self, call: Callable[[], T]) -> T | Unavailable:
        """The answer of one call, or why there is none."""
        try:
            return call()
        except self._nvml.NVMLError as error:
            return Unavailable(f"NVML: {str(error).lower()}")
        except (OSError, ValueError, UnicodeDecodeError, AttributeError) as error:
            return Unavailable(f"NVML: {error}")

    def _name(self, handle: Any) -> str | Unavailable:
        return self._ask(lambda: str(self._nvml.nvmlDeviceGetName(handle)))

    def snapshot(self) -> Gpus:
        """Everything about every GPU, once."""
        nvml = self._nvml
        return Gpus(
            driver=known_or(self._ask(lambda: str(nvml.nvmlSystemGetDriverVersion())), ""),
            nvml=self._ask(lambda: str(nvml.nvmlSystemGetNVMLVersion())),
            cuda=self._ask(lambda: _cuda_version(int(nvml.nvmlSystemGetCudaDriverVersion()))),
            devices=tuple(self._device(i) for i in self._handles),
            lost=self.lost,
            readings=self.readings(),
            holders=self.holders(),
        )

    def readings(self) -> tuple[Reading, ...]:
        """What each GPU does now: memory, power, clocks, temperature."""
        return tuple(self._reading(index, handle) for index, handle in self._handles.items())

    def _reading(self, index: int, handle: Any, *, quick: bool = False) -> Reading:
        nvml, ask = self._nvml, self._ask
        memory = self._memory(handle)
        busy = ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
        return Reading(
            index=index,
            memory_used_mib=memory if isinstance(memory, Unavailable) else memory[1],
            memory_free_mib=memory if isinstance(memory, Unavailable) else memory[2],
            busy_percent=busy if isinstance(busy, Unavailable) else int(busy.gpu),
            memory_busy_percent=busy if isinstance(busy, Unavailable) else int(busy.memory),
            power_w=ask(lambda: float(nvml.nvmlDeviceGetPowerUsage(handle)) / 1e3),
            power_limit_w=_LEFT_OUT
            if quick
            else ask(lambda: float(nvml.nvmlDeviceGetEnforcedPowerLimit(handle)) / 1e3),
            sm_clock_mhz=ask(lambda: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))),
            memory_clock_mhz=_LEFT_OUT
            if quick
            else ask(lambda: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM))),
            temperature_c=ask(
                lambda: int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
            ),
            reasons=ask(lambda: _reasons(self._event_reasons(handle))),
        )

    def versions(self) -> tuple[str, str]:
        """The driver's version and the newest CUDA that it runs; "" for what it does not tell."""
        nvml = self._nvml
        driver = self._ask(lambda: str(nvml.nvmlSystemGetDriverVersion()))
        cuda = self._ask(lambda: _cuda_version(int(nvml.nvmlSystemGetCudaDriverVersion())))
        said = "" if isinstance(cuda, Unavailable) else f"{cuda[0]}.{cuda[1]}"
        return known_or(driver, ""), said

    def names(self) -> dict[int, str]:
        """GPU -> its name."""
        return {i: known_or(self._name(handle), "") for i, handle in self._handles.items()}

    def quick_readings(self) -> tuple[Reading, ...]:
        """The same without what does not move: the power limit and the memory's clock."""
        return tuple(
            self._reading(index, handle, quick=True) for index, handle in self._handles.items()
        )

    def errors(self) -> dict[int, int]:
        """GPU -> uncorrected memory errors since the driver was loaded, where it counts them."""
        nvml = self._nvml
        kind, since = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        found = {}
        for index, handle in self._handles.items():
            count = self._ask(partial(nvml.nvmlDeviceGetTotalEccErrors, handle, kind, since))
            if not isinstance(count, Unavailable):
                found[index] = int(count)
        return found

    def link_bytes(self) -> dict[int, int]:
        """GPU -> bytes over all its NVLinks in both directions so far, where it counts them."""
        nvml, found = self._nvml, {}
        asked = [(field, _ALL_LINKS) for field in _LINK_FIELDS]
        for index, handle in self._handles.items():
            if index in self._unlinked:
                continue
            told = self._ask(partial(nvml.nvmlDeviceGetFieldValues, handle, asked))
            if isinstance(told, Unavailable) or any(one.nvmlReturn for one in told):
                self._unlinked.add(index)
            else:
                found[index] = sum(int(one.value.ullVal) for one in told) * 1024
        return found

    def xids(self) -> tuple[tuple[int, int], ...]:
        """GPU and code of each error that the driver has reported since the first call."""
        nvml = self._nvml
        if self._events is None:
            self._events = self._ask(nvml.nvmlEventSetCreate)
            for handle in self._handles.values() if self._hears else ():
                kind = nvml.nvmlEventTypeXidCriticalError
                self._ask(partial(nvml.nvmlDeviceRegisterEvents, handle, kind, self._events))
        found: list[tuple[int, int]] = []
        while self._hears and len(found) < _MOST_XIDS:
            event = self._ask(lambda: nvml.nvmlEventSetWait_v2(self._events, 0))
            if isinstance(event, Unavailable):  # also if there is none
                break
            index = self._ask(partial(nvml.nvmlDeviceGetIndex, event.device))
            found.append((known_or(index, -1), int(event.eventData)))
        return tuple(found)

    def close(self) -> None:
        """Let go of what was registered for errors."""
        if self._hears:
            self._ask(partial(self._nvml.nvmlEventSetFree, self._events))

    @property
    def _hears(self) -> bool:
        return self._events is not None and not isinstance(self._events, Unavailable)

    def _event_reasons(self, handle: Any) -> int:
        try:
            return int(self._nvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
        except self._nvml.NVMLError_FunctionNotFound:  # drivers before 535
            return int(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))

    def _memory(self, handle: Any) -> tuple[int, int, int] | Unavailable:
        """Total, used and free MiB; used without what the driver keeps for itself."""
        nvml = self._nvml

        def newer() -> tuple[int, int, int]:
            found = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
            return found.total // MIB, found.used // MIB, found.free // MIB

        def older() -> tuple[int, int, int]:
            found = nvml.nvmlDeviceGetMemoryInfo(handle)
            return found.total // MIB, found.used // MIB, found.free // MIB

        found = self._ask(newer)
        return self._ask(older) if isinstance(found, Unavailable) else found

    def holders(self) -> tuple[Holder, ...]:
        """The processes that hold memory of a GPU, as far as this user may see them."""
        nvml, found = self._nvml, []
        for index, handle in self._handles.items():
            listed = self._ask(partial(nvml.nvmlDeviceGetComputeRunningProcesses, handle))
            for process in known_or(listed, []):
                used = process.usedGpuMemory
                unknown = Unavailable("the driver does not say how much")
                found.append(
                    Holder(
                        index=index,
                        pid=int(process.pid),
                        memory_mib=unknown if used is None else int(used) // MIB,
                        command=_command(int(process.pid)),
                    )
                )
        return tuple(found)

    def _device(self, index: int) -> Gpu:
        nvml, ask, handle = self._nvml, self._ask, self._handles[index]
        memory = self._memory(handle)
        up, down = self._links(handle)
        rows = ask(lambda: nvml.nvmlDeviceGetRemappedRows(handle))
        uncorrected, volatile = (
            nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
            nvml.NVML_VOLATILE_ECC,
        )
        return Gpu(
            index=index,
            name=known_or(self._name(handle), "unknown GPU"),
            uuid=ask(lambda: str(nvml.nvmlDeviceGetUUID(handle))),
            bus_id=ask(lambda: str(nvml.nvmlDeviceGetPciInfo(handle).busId)),
            capability=ask(lambda: _pair(nvml.nvmlDeviceGetCudaComputeCapability(handle))),
            memory_total_mib=memory if isinstance(memory, Unavailable) else memory[0],
            mig=ask(lambda: bool(nvml.nvmlDeviceGetMigMode(handle)[0])),
            ecc=ask(lambda: bool(nvml.nvmlDeviceGetEccMode(handle)[0])),
            ecc_uncorrected=ask(
                lambda: int(nvml.nvmlDeviceGetTotalEccErrors(handle, uncorrected, volatile))
            ),
            remap_pending=rows if isinstance(rows, Unavailable) else bool(rows[2]),
            remap_failed=rows if isinstance(rows, Unavailable) else bool(rows[3]),
            compute_mode=ask(lambda: _COMPUTE_MODES[int(nvml.nvmlDeviceGetComputeMode(handle))]),
            persistence=ask(lambda: bool(nvml.nvmlDeviceGetPersistenceMode(handle))),
            sm_clock_max_mhz=ask(
                lambda: int(nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM))
            ),
            links=up,
            links_down=down,
            peers=ask(lambda: self._peers(index)),
            fabric=ask(lambda: self._fabric(handle)),
            numa_node=ask(lambda: int(nvml.nvmlDeviceGetNumaNodeId(handle))),
            virtual=ask(
                lambda: _VIRTUAL.get(int(nvml.nvmlDeviceGetVirtualizationMode(handle)), "")
            ),
        )

    def _links(self, handle: Any) -> tuple[int | Unavailable, tuple[int, ...] | Unavailable]:
        """How many NVLinks are up, and which are down; both 0 and empty without NVLink."""
        nvml, up, down = self._nvml, 0, []
        for link in range(MAX_LINKS):
            try:
                active = nvml.nvmlDeviceGetNvLinkState(handle, link)
            except (nvml.NVMLError_InvalidArgument, nvml.NVMLError_NotSupported):
                break
            except nvml.NVMLError as error:
                fact = Unavailable(f"NVML: {str(error).lower()}")
                return fact, fact
            if active:
                up += 1
            else:
                down.append(link)
        return up, tuple(down)

    def _peers(self, index: int) -> dict[int, str]:
        """Other GPU -> what stands against peer access, by NVLink or by reading over PCIe."""
        nvml, here = self._nvml, self._handles[index]
        found = {}
        for other, handle in self._handles.items():
            if other != index:
                states = [
                    int(nvml.nvmlDeviceGetP2PStatus(here, handle, what))
                    for what in (_NVLINK, _READ)
                ]
                best = min(states)
                found[other] = _PEER[best] if best < len(_PEER) else f"status {best}"
        return found

    def _fabric(self, handle: Any) -> Fabric:
        """State of the switch fabric; version 3 of the answer, else version 2.

        Raises:
            NVMLError: this GPU or this driver has no fabric.
        """
        nvml = self._nvml
        info: Any = None
        for number, name in ((3, "c_nvmlGpuFabricInfo_v3_t"), (2, "c_nvmlGpuFabricInfo_v2_t")):
            kind: Any = getattr(nvml, name, None)  # version 3 is not in every pynvml
            if kind is None:
                continue
            info = kind()
            info.version = ctypes.sizeof(kind) | number << 24
            try:
                nvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(info))
            except nvml.NVMLError_NotSupported:
                raise
            except nvml.NVMLError:
                if name.endswith("v2_t"):  # the last to try
                    raise
                continue
            break
        summary = int(getattr(info, "healthSummary", 0))
        return Fabric(
            state=_named(_FABRIC_STATES, int(info.state)),
            status=int(info.status),
            clique=int(info.cliqueId),
            health=_named(_HEALTH, summary),
        )


def _named(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else f"state {number}"


def _pair(found: Any) -> tuple[int, int]:
    return int(found[0]), int(found[1])


def _cuda_version(number: int) -> tuple[int, int]:
    """12080 -> (12, 8)."""
    return number // 1000, number % 1000 // 10


def _reasons(bits: int) -> tuple[str, ...]:
    return tuple(name for bit, name in REASONS.items() if bits & bit)


def _command(pid: int) -> str:
    """The words of a process, as far as this user may read them; at most 200 characters."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    return raw.replace(b"\0", b" ").decode(errors="replace").strip()[:200]


def gpus() -> Gpus | Unavailable:
    """Everything about every GPU, or why nothing can be said."""
    try:
        with open_nvml() as nvml:
            return nvml.snapshot()
    except NoNvmlError as error:
        return error.fact

"""Ask the driver for multicast objects (NVLS), and make one over all GPUs; needs no torch.

In:  libcuda.so.1, and libnvidia-ml.so.1 for the state of the fabric. Out: codes of the driver.
Not: NCCL (allreduce.py): it may fail for more reasons, never for fewer.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from .harness import SkipError, experiment

NAME = "multicast"
# As in the header of the driver's interface, cuda.h.
ATTRIBUTE_MULTICAST, HANDLE_FD, GRANULARITY_RECOMMENDED = 132, 1, 1
CODES = {
    1: "CUDA_ERROR_INVALID_VALUE", 3: "CUDA_ERROR_NOT_INITIALIZED", 100: "CUDA_ERROR_NO_DEVICE",
    401: "CUDA_ERROR_ILLEGAL_STATE", 800: "CUDA_ERROR_NOT_PERMITTED",
    801: "CUDA_ERROR_NOT_SUPPORTED", 802: "CUDA_ERROR_SYSTEM_NOT_READY",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", 999: "CUDA_ERROR_UNKNOWN",
}  # fmt: skip
FABRIC_STATES = ("not supported", "not started", "in progress", "completed")


class _Properties(ctypes.Structure):
    """CUmulticastObjectProp."""

    _fields_ = (
        ("devices", ctypes.c_uint),
        ("size", ctypes.c_size_t),
        ("handles", ctypes.c_ulonglong),
        ("flags", ctypes.c_ulonglong),
    )


class _Fabric(ctypes.Structure):
    """nvmlGpuFabricInfo_t."""

    _fields_ = (
        ("cluster", ctypes.c_ubyte * 16),
        ("status", ctypes.c_uint),
        ("clique", ctypes.c_uint),
        ("state", ctypes.c_ubyte),
    )


class DriverError(Exception):
    """A call of the driver failed."""


def run(_torch: Any, _kind: str, arguments: dict[str, Any], limit_s: float) -> None:
    """The attribute, the fabric's state, an object over all GPUs."""
    cuda = str(arguments.get("libcuda", "libcuda.so.1"))
    nvml = str(arguments.get("libnvml", "libnvidia-ml.so.1"))
    experiment("attribute", lambda: _attribute(cuda), limit_s)
    experiment("fabric state", lambda: _fabric(nvml), limit_s)
    experiment("object over all GPUs", lambda: _object(cuda), limit_s)


def _load(name: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise SkipError(f"no driver here: {error}") from error


def _check(library: ctypes.CDLL, function: str, *arguments: Any) -> None:
    call: Callable[..., int] = getattr(library, function)
    code = call(*arguments)
    if code:
        raise DriverError(f"{function}: {code} {CODES.get(code, '')}".rstrip())


def _devices(library: ctypes.CDLL) -> list[int]:
    _check(library, "cuInit", 0)
    count = ctypes.c_int()
    _check(library, "cuDeviceGetCount", ctypes.byref(count))
    if not count.value:
        raise SkipError("the driver has no GPU")
    found = []
    for index in range(count.value):
        device = ctypes.c_int()
        _check(library, "cuDeviceGet", ctypes.byref(device), index)
        found.append(device.value)
    return found


def _attribute(name: str) -> dict[str, Any]:
    library = _load(name)
    values = []
    for device in _devices(library):
        value = ctypes.c_int()
        _check(library, "cuDeviceGetAttribute", ctypes.byref(value), ATTRIBUTE_MULTICAST, device)
        values.append(value.value)
    return {"supported": values}


def _fabric(name: str) -> dict[str, Any]:
    library = _load(name)
    _check(library, "nvmlInit_v2")
    count = ctypes.c_uint()
    _check(library, "nvmlDeviceGetCount_v2", ctypes.byref(count))
    states, statuses = [], []
    for index in range(count.value):
        handle, info = ctypes.c_void_p(), _Fabric()
        _check(library, "nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle))
        _check(library, "nvmlDeviceGetGpuFabricInfo", handle, ctypes.byref(info))
        states.append(FABRIC_STATES[info.state] if info.state < len(FABRIC_STATES) else "unknown")
        statuses.append(int(info.status))
    return {"states": states, "statuses": statuses}


def _object(name: str) -> dict[str, Any]:
    library = _load(name)
    devices = _devices(library)
    wanted = _Properties(devices=len(devices), size=0, handles=HANDLE_FD, flags=0)
    size = ctypes.c_size_t()
    _check(
        library, "cuMulticastGetGranularity", ctypes.byref(size), ctypes.byref(wanted),
        GRANULARITY_RECOMMENDED,
    )  # fmt: skip
    wanted.size = size.value
    handle = ctypes.c_ulonglong()
    _check(library, "cuMulticastCreate", ctypes.byref(handle), ctypes.byref(wanted))
    for device in devices:
        _check(library, "cuMulticastAddDevice", handle, device)
    return {"gpus": len(devices), "granularity_bytes": size.value}

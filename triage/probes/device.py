"""What differs between a GPU and the CPU, so that the experiments need not know.

In:  the name of a device. Out: Device: memory, streams, capture, waiting.
Not: the experiments.
"""

from __future__ import annotations

import importlib
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .harness import SkipError

MIB = 1 << 20
_PAGE = 4096


def torch_or_none() -> Any:
    """The module torch; None where it is not installed, or does not import."""
    # With NVML the question for GPUs makes no CUDA context, which a fork could not use.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    try:
        return importlib.import_module("torch")
    except Exception:  # noqa: BLE001  a library that is missing or broken, in any way
        return None


class Device:
    """The CPU; what a GPU does otherwise is in Gpu."""

    kind = "cpu"

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.name = "cpu"
        self._held: list[Any] = []

    def facts(self) -> dict[str, Any]:
        """What it is."""
        return {"device": self.name, "count": os.cpu_count() or 1}

    def tensor(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Small random numbers."""
        made = self.torch.randn(shape, dtype=self.torch.float32, device=self.name) * 0.1
        return made.to(dtype)

    def wait(self) -> None:
        """Wait until everything is done."""

    def leave_free(self, mib: int) -> float:
        """Take memory until about so many MiB are left; what is left indeed."""
        used = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE
        limit = used + mib * MIB
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        return float(mib)

    def capture(self, work: Callable[[], Any], *, warm: bool = True) -> Callable[[], Any]:
        """The work captured as a graph; calling it replays."""
        del work, warm
        raise SkipError("the CPU captures no graphs")

    def side(self, work: Callable[[], Any], *, join: bool = True) -> Any:
        """The work on another stream, which waits for this one and is waited for."""
        del work, join
        raise SkipError("the CPU has no streams")

    def block(self, value: Any) -> Any:
        """An operation that waits for the device, which a capture forbids."""
        return value.sum().item()


class Gpu(Device):
    """The current CUDA device."""

    kind = "cuda"

    def __init__(self, torch: Any, index: int = 0) -> None:
        super().__init__(torch)
        self.name = f"cuda:{index}"

    def facts(self) -> dict[str, Any]:
        """What it is; makes a context."""
        cuda = self.torch.cuda
        free, total = cuda.mem_get_info(self.name)
        return {
            "device": cuda.get_device_name(self.name),
            "capability": list(cuda.get_device_capability(self.name)),
            "count": cuda.device_count(),
            "free_mib": free // MIB,
            "total_mib": total // MIB,
        }

    def wait(self) -> None:
        """Wait until everything is done."""
        self.torch.cuda.synchronize(self.name)

    def leave_free(self, mib: int) -> float:
        """Take memory until about so many MiB are left; what is left indeed."""
        cuda = self.torch.cuda
        cuda.empty_cache()
        for _ in range(64):
            free = cuda.mem_get_info(self.name)[0] - mib * MIB
            if free < 2 * MIB:
                break
            try:
                # Blocks of the allocator are whole 2 MiB pages.
                size = free // (2 * MIB) * 2 * MIB
                self._held.append(self.torch.empty(size, dtype=self.torch.uint8, device=self.name))
            except RuntimeError:
                break
        return float(cuda.mem_get_info(self.name)[0] / MIB)

    def capture(self, work: Callable[[], Any], *, warm: bool = True) -> Callable[[], Any]:
        """The work captured as a graph, after three runs on another stream if `warm`."""
        cuda = self.torch.cuda
        if warm:
            stream = cuda.Stream()
            stream.wait_stream(cuda.current_stream())
            with cuda.stream(stream):
                for _ in range(3):
                    work()
            cuda.current_stream().wait_stream(stream)
        self.wait()
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            result = work()

        def replay() -> Any:
            graph.replay()
            self.wait()
            return result

        return replay

    def side(self, work: Callable[[], Any], *, join: bool = True) -> Any:
        """The work on another stream, which waits for this one and is waited for."""
        cuda = self.torch.cuda
        stream = cuda.Stream()
        stream.wait_stream(cuda.current_stream())
        with cuda.stream(stream):
            result = work()
        if join:
            cuda.current_stream().wait_stream(stream)
        return result


def device_of(torch: Any, kind: str) -> Device:
    """The device of that kind."""
    return Gpu(torch) if kind == "cuda" else Device(torch)


def versions(torch: Any) -> dict[str, str]:
    """Versions of what the experiments rest on; makes no context."""
    found = {"torch": str(torch.__version__), "cuda": str(torch.version.cuda or "")}
    try:
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    except Exception:  # noqa: BLE001  a build without NCCL says so in many ways
        found["nccl"] = ""
    return found

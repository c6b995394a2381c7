"""Make cuBLAS's handle by a first product: plainly, on a thread, in a capture, short of memory.

In:  free MiB. Out: where the handle can be made, and the status where not.
Not: any shape of a model (mla_absorb_bmm.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from .device import Device, device_of
from .harness import experiment

NAME = "cublas-handle"
SHORT_MIB = (64, 16)


def run(torch: Any, kind: str, arguments: dict[str, Any], limit_s: float) -> None:
    """Each in a process of its own: a handle, once made, stays."""
    ways: dict[str, Callable[[Device, Callable[[], Any]], Any]] = {
        "plain": lambda _, product: product(),
        "second thread": lambda _, product: _threaded(product),
        "in a capture": lambda device, product: device.capture(product, warm=False)(),
        "in a capture, second stream": lambda device, product: device.capture(
            lambda: device.side(product), warm=False
        )(),
    }
    for name, way in ways.items():
        experiment(name, _one(torch, kind, way, None), limit_s, free_mib=None)
    for mib in arguments.get("headroom_mib", SHORT_MIB):
        name = f"plain, {mib} MiB free"
        experiment(name, _one(torch, kind, ways["plain"], mib), limit_s, free_mib=mib)


def _one(
    torch: Any, kind: str, way: Callable[[Device, Callable[[], Any]], Any], mib: int | None
) -> Callable[[], dict[str, Any]]:
    def work() -> dict[str, Any]:
        device = device_of(torch, kind)
        left = device.tensor((64, 64), torch.float32)
        right = device.tensor((64, 64), torch.float32)
        device.wait()
        free = device.leave_free(mib) if mib is not None else None
        way(device, lambda: left @ right)
        device.wait()
        return {} if free is None else {"left_mib": round(free, 1)}

    return work


def _threaded(product: Callable[[], Any]) -> Any:
    """The product on another thread; its exception is raised here."""
    found: list[Any] = []

    def run_it() -> None:
        try:
            found.append(product())
        except BaseException as error:  # noqa: BLE001  handed over
            found.append(error)

    thread = threading.Thread(target=run_it)
    thread.start()
    thread.join()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]

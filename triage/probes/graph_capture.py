"""Capture a product as a graph: warmed up, cold, over a second stream, and in forbidden ways.

In:  nothing. Out: which captures work, and with which error the forbidden ones end.
Not: what an engine captures; only whether this driver, torch and cuBLAS capture at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .device import device_of
from .harness import experiment

NAME = "graph-capture"
SIZE = 512
_TOLERANCE = 0.01  # TF32 may be on
# Experiment -> whether it must fail: a capture that lets it pass is broken.
MUST_FAIL = {"unjoined side stream": True, "illegal operation": True}


def run(torch: Any, kind: str, arguments: dict[str, Any], limit_s: float) -> None:
    """Each in a process of its own, as one failed capture may break the next."""
    size = int(arguments.get("size", SIZE))
    for name in ("eager", "warm", "cold", "side stream", *MUST_FAIL):
        must_fail = MUST_FAIL.get(name, False)
        experiment(name, _one(torch, kind, name, size), limit_s, must_fail=must_fail)


def _one(torch: Any, kind: str, name: str, size: int) -> Callable[[], dict[str, Any]]:
    def work() -> dict[str, Any]:
        device = device_of(torch, kind)
        left = device.tensor((size, size), torch.float32)
        right = device.tensor((size, size), torch.float32)
        expected = left.cpu() @ right.cpu()

        def product() -> Any:
            return left @ right

        # Experiment -> what is captured, and whether it was warmed up.
        captured: dict[str, tuple[Callable[[], Any], bool]] = {
            "warm": (product, True),
            "cold": (product, False),
            "side stream": (lambda: device.side(product), True),
            "unjoined side stream": (lambda: device.side(product, join=False), False),
            "illegal operation": (lambda: device.block(product()), False),
        }
        if name == "eager":
            result = product()
        else:
            inside, warm = captured[name]
            result = device.capture(inside, warm=warm)()
        device.wait()
        if not hasattr(result, "cpu"):
            return {"error": 0.0}
        error = float((result.cpu() - expected).abs().max() / expected.abs().max())
        if not error < _TOLERANCE:
            raise ValueError(f"wrong result: off by {error:.3f} of the largest value")
        return {"error": round(error, 6)}

    return work

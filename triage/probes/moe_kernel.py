"""How fast torch reads the weights of touched experts, sliced (TP) and whole (EP).

In:  dimensions of the experts, ranks, tokens. Out: bytes a second of each layout.
Not: the engine's own kernel for its number format: this is bf16, an expert after the other.
     What it tells is whether whole experts are read faster than slices here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .device import Device, device_of
from .harness import SkipError, experiment

NAME = "moe-kernel"
TOKENS = (1, 8, 64)
_BYTES = 2
_RUNS = 5
_CPU = {"experts": 32, "hidden": 512, "intermediate": 512}


def run(torch: Any, kind: str, arguments: dict[str, Any], limit_s: float) -> None:
    """Each layout at each number of tokens."""
    shape = {
        "experts": int(arguments.get("experts", 384)),
        "per_token": int(arguments.get("per_token", 8)),
        "hidden": int(arguments.get("hidden", 7168)),
        "intermediate": int(arguments.get("intermediate", 2048)),
        "tp": int(arguments.get("tp", 8)),
    }
    if kind != "cuda":  # the whole would not fit in a laptop, and would tell nothing more
        shape = {name: min(value, _CPU.get(name, value)) for name, value in shape.items()}
    for tokens in arguments.get("tokens", TOKENS):
        for layout in ("TP", "EP"):
            given = {"tokens": tokens, "layout": layout}
            experiment(
                f"{layout} {tokens} tokens", _one(torch, kind, shape, given), limit_s, **given
            )


def _one(
    torch: Any, kind: str, shape: dict[str, int], given: dict[str, Any]
) -> Callable[[], dict[str, Any]]:
    def work() -> dict[str, Any]:
        device = device_of(torch, kind)
        ranks = shape["tp"]
        whole = given["layout"] == "EP"
        experts = max(1, shape["experts"] // ranks) if whole else shape["experts"]
        width = shape["intermediate"] if whole else max(1, shape["intermediate"] // ranks)
        up = device.tensor((experts, shape["hidden"], 2 * width), torch.bfloat16)
        down = device.tensor((experts, width, shape["hidden"]), torch.bfloat16)
        torch.manual_seed(7)
        # Where experts are whole, a rank has its share of the touched ones.
        chosen = torch.stack([
            torch.randperm(shape["experts"])[: shape["per_token"]] for _ in range(given["tokens"])
        ])  # fmt: skip
        mine = [
            (int(e), [t for t in range(given["tokens"]) if e in chosen[t]])
            for e in chosen.unique()
            if int(e) < experts
        ]
        if not mine:
            raise SkipError("no touched expert lies on this rank")
        inputs = device.tensor((given["tokens"], shape["hidden"]), torch.bfloat16)
        rows = [(e, torch.tensor(t, device=inputs.device)) for e, t in mine]
        output = torch.zeros_like(inputs)

        def layer() -> Any:
            output.zero_()
            for expert, tokens in rows:
                both = inputs[tokens] @ up[expert]
                gate, value = both.chunk(2, dim=-1)
                hidden = torch.nn.functional.silu(gate) * value
                output.index_add_(0, tokens, hidden @ down[expert])
            return output

        seconds = _best(device, layer)
        read = len(rows) * 3 * shape["hidden"] * width * _BYTES
        if not bool(torch.isfinite(output.float()).all()):
            raise ValueError("the result is not finite")
        return {
            "touched": len(rows),
            "bytes": read,
            "seconds": round(seconds, 7),
            "bytes_per_s": round(read / seconds),
        }

    return work


def _best(device: Device, layer: Callable[[], Any]) -> float:
    """Seconds of the best run; captured as a graph where that exists."""
    try:
        replay = device.capture(layer)
    except SkipError:
        replay = layer
    best = float("inf")
    for _ in range(_RUNS):
        device.wait()
        started = time.monotonic()
        replay()
        device.wait()
        best = min(best, time.monotonic() - started)
    return best

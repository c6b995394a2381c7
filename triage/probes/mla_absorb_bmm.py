"""The two batched products that absorb the projections of MLA, alone, at falling free memory.

In:  heads, ranks and dimensions of the model, free MiB. Out: which of them fail, and how.
Not: the rest of the layer: a kernel that broke the context before is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .device import Device, device_of
from .harness import SkipError, experiment

NAME = "mla-absorb-bmm"
HEADROOM_MIB = (1024, 512, 256, 128, 64, 32, 16)
_TOLERANCE = 0.05  # of the largest value, for bf16 and for fp8 with one scale
_FP8_TOLERANCE = 0.15


def run(torch: Any, kind: str, arguments: dict[str, Any], limit_s: float) -> None:
    """bf16 and fp8, eager and captured, each at each headroom, in a process of its own."""
    shape = {
        "heads": max(1, int(arguments.get("heads", 64)) // int(arguments.get("tp", 8))),
        "nope": int(arguments.get("nope", 128)),
        "rank": int(arguments.get("kv_rank", 512)),
        "value": int(arguments.get("value", 128)),
        "tokens": int(arguments.get("tokens", 64)),
    }
    headroom = tuple(arguments.get("headroom_mib", HEADROOM_MIB))
    for dtype in ("bf16", "fp8"):
        for mode in ("eager", "captured"):
            for mib in headroom:
                given = {"dtype": dtype, "mode": mode, "free_mib": mib}
                found = experiment(
                    f"{dtype} {mode} {mib} MiB", _one(torch, kind, shape, given), limit_s, **given
                )
                if found["outcome"] == "skipped":
                    break  # what does not exist here does not exist with less memory


def _one(
    torch: Any, kind: str, shape: dict[str, int], given: dict[str, Any]
) -> Callable[[], dict[str, Any]]:
    def work() -> dict[str, Any]:
        device = device_of(torch, kind)
        product = _bf16 if given["dtype"] == "bf16" else _fp8
        make, expected, tolerance = product(device, shape)
        left = device.leave_free(given["free_mib"])
        # The first call of the library is in the warm-up, as in an engine.
        # Nothing may have called it before: its handle and workspace need the memory.
        try:
            result = device.capture(make)() if given["mode"] == "captured" else make()
        except NotImplementedError as error:
            raise SkipError("this torch has no such product for this device") from error
        device.wait()
        off = float((result.float().cpu() - expected).abs().max() / expected.abs().max())
        if not off < tolerance:
            raise ValueError(f"wrong result: off by {off:.3f} of the largest value")
        return {"left_mib": round(left, 1), "error": round(off, 5)}

    return work


def _bf16(device: Device, shape: dict[str, int]) -> tuple[Callable[[], Any], Any, float]:
    """As torch.bmm over the heads: query to latent, latent to value."""
    torch = device.torch
    query = device.tensor((shape["tokens"], shape["heads"], shape["nope"]), torch.bfloat16)
    absorb = device.tensor((shape["heads"], shape["nope"], shape["rank"]), torch.bfloat16)
    expand = device.tensor((shape["heads"], shape["rank"], shape["value"]), torch.bfloat16)
    device.wait()
    q, a, e = (x.float().cpu() for x in (query, absorb, expand))
    expected = torch.bmm(torch.bmm(q.transpose(0, 1), a), e)

    def make() -> Any:
        return torch.bmm(torch.bmm(query.transpose(0, 1), absorb), expand)

    return make, expected, _TOLERANCE


def _fp8(device: Device, shape: dict[str, int]) -> tuple[Callable[[], Any], Any, float]:
    """The first product with fp8 operands and one scale each, head by head."""
    torch = device.torch
    fp8 = getattr(torch, "float8_e4m3fn", None)
    multiply = getattr(torch, "_scaled_mm", None)
    if fp8 is None or multiply is None:
        raise SkipError("this torch has no fp8 product")
    tokens = -(-shape["tokens"] // 16) * 16  # the library wants whole 16s
    query = device.tensor((shape["heads"], tokens, shape["nope"]), torch.float32)
    absorb = device.tensor((shape["heads"], shape["rank"], shape["nope"]), torch.float32)
    device.wait()
    expected = torch.bmm(query.float().cpu(), absorb.float().cpu().transpose(1, 2))
    one = torch.ones((), dtype=torch.float32, device=query.device)
    small_query, small_absorb = query.to(fp8), absorb.to(fp8)

    def make() -> Any:
        made = [
            multiply(
                small_query[head], small_absorb[head].t(), scale_a=one, scale_b=one,
                out_dtype=torch.bfloat16,
            )
            for head in range(shape["heads"])
        ]  # fmt: skip
        return torch.stack(made)

    return make, expected, _FP8_TOLERANCE

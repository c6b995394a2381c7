"""Add up a tensor over ranks: NCCL with NVLS off and on, symmetric memory, gloo without GPUs.

In:  how many ranks. Out: whether the sums are right, seconds of each size, NCCL's own words.
Not: the engine's own kernels for small tensors.
"""

from __future__ import annotations

import importlib
import os
import re
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .harness import SkipError, experiment

NAME = "allreduce"
KIB = (8, 1024, 16384)
_TOLD = re.compile(r"NVLS[^\n]{0,160}|NCCL WARN[^\n]{0,160}")


def run(torch: Any, kind: str, arguments: dict[str, Any], limit_s: float) -> None:
    """Every way to add up that this machine has."""
    sizes = tuple(arguments.get("kib", KIB))
    if kind != "cuda":
        ranks = int(arguments.get("ranks", 2))
        experiment("gloo", _ranks(torch, "gloo", ranks, sizes, {}), limit_s, ranks=ranks)
        return
    # The number of GPUs is asked for in a fork: here it would make a context.
    counted = experiment("count", lambda: {"gpus": torch.cuda.device_count()}, limit_s)
    ranks = int(arguments.get("ranks", counted["facts"].get("gpus", 1)))
    for nvls in ("0", "1"):
        environment = {
            "NCCL_NVLS_ENABLE": nvls,
            "NCCL_DEBUG": "INFO",
            "NCCL_DEBUG_SUBSYS": "INIT,NVLS",
        }
        work = _ranks(torch, "nccl", ranks, sizes, environment)
        experiment(f"nccl, NVLS {nvls}", work, limit_s, ranks=ranks, nvls=nvls)
    work = _ranks(torch, "symmetric", ranks, sizes, {})
    experiment("symmetric memory", work, limit_s, ranks=ranks)


def _ranks(
    torch: Any, way: str, ranks: int, sizes: tuple[int, ...], environment: dict[str, str]
) -> Callable[[], dict[str, Any]]:
    """Fork the ranks, wait for all, gather what they wrote."""

    def work() -> dict[str, Any]:
        if ranks < 2:  # noqa: PLR2004
            raise SkipError("one rank has nobody to add up with")
        os.environ.update(environment)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            port = _free_port()
            children = [
                _fork(torch, way, (rank, ranks, port), sizes, folder) for rank in range(ranks)
            ]
            codes = [os.waitpid(pid, 0)[1] for pid in children]
            texts = [_read(folder / f"{rank}.error") for rank in range(ranks)]
            told = sorted(
                {m for r in range(ranks) for m in _TOLD.findall(_read(folder / f"{r}.log"))}
            )
            wrong = [f"rank {rank}: {text}" for rank, text in enumerate(texts) if text]
            died = [f"rank {rank} ended with status {c}" for rank, c in enumerate(codes) if c]
            if wrong or died:
                raise RuntimeError("; ".join([*wrong, *died])[:1500])
            seconds = [
                [float(word) for word in _read(folder / f"{rank}.seconds").split()]
                for rank in range(ranks)
            ]
        return {
            "kib": list(sizes),
            "seconds": [max(column) for column in zip(*seconds, strict=True)],
            "told": told[:8],
        }

    return work


def _fork(
    torch: Any, way: str, place: tuple[int, int, int], sizes: tuple[int, ...], folder: Path
) -> int:
    rank, ranks, port = place
    pid = os.fork()
    if pid:
        return pid
    log = os.open(folder / f"{rank}.log", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(log, 1)  # NCCL prints to stdout
    try:
        os.environ.update(
            MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(ranks)
        )
        seconds = _rank(torch, way, rank, ranks, sizes)
        (folder / f"{rank}.seconds").write_text(" ".join(f"{s:.9f}" for s in seconds))
    except BaseException:  # noqa: BLE001  handed to the parent as text
        (folder / f"{rank}.error").write_text(traceback.format_exc(limit=2)[-800:])
    finally:
        sys.stderr.flush()
        os._exit(0)


def _rank(torch: Any, way: str, rank: int, ranks: int, sizes: tuple[int, ...]) -> list[float]:
    """One rank: join, add up each size, check the sum; seconds of the best of five."""
    dist = importlib.import_module("torch.distributed")
    if way == "gloo":
        device = torch.device("cpu")
    else:
        device = torch.device("cuda", rank)
        torch.cuda.set_device(device)
    dist.init_process_group("gloo" if way == "gloo" else "nccl")
    found = []
    for kib in sizes:
        count = kib * 1024 // 2
        add = _adder(torch, dist, way, count, device)
        best = float("inf")
        value: Any = None
        for _ in range(5):
            if device.type == "cuda":
                torch.cuda.synchronize()
            started = time.monotonic()
            value = add(rank + 1)
            if device.type == "cuda":
                torch.cuda.synchronize()
            best = min(best, time.monotonic() - started)
        expected = ranks * (ranks + 1) / 2
        if any(float(edge) != expected for edge in (value.min(), value.max())):
            raise ValueError(f"the sum of {kib} KiB is wrong")
        found.append(best)
    dist.destroy_process_group()
    return found


def _adder(torch: Any, dist: Any, way: str, count: int, device: Any) -> Callable[[int], Any]:
    if way == "symmetric":
        symmetric = importlib.import_module("torch.distributed._symmetric_memory")
        tensor = symmetric.empty(count, dtype=torch.bfloat16, device=device)
        symmetric.rendezvous(tensor, dist.group.WORLD)

        def add(number: int) -> Any:
            tensor.fill_(number)
            # Over peer memory: that multicast is missing is for another probe to say.
            torch.ops.symm_mem.two_shot_all_reduce_(tensor, "sum", dist.group.WORLD.group_name)
            return tensor

        return add
    tensor = torch.empty(
        count, dtype=torch.bfloat16 if way != "gloo" else torch.float32, device=device
    )

    def add_plain(number: int) -> Any:
        tensor.fill_(number)
        dist.all_reduce(tensor)
        return tensor

    return add_plain


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""

"""Record on a GPU machine what the probes give there, and the failures that they can provoke.

In:  the Python of the engine (torch with CUDA), a folder. Out: in the folder a file for each
     probe (`triage.probe/1`), a log for each provoked failure, and `machine.json`.
Not: judging them: a person reads them before they become cases (fixtures/README.md).

    .venv/bin/python tools/record_gpu_fixtures.py --python PYTHON [--out fixtures/gpu]

One command, about five minutes on eight GPUs. Without a GPU the same steps run, and the
record says of each what it lacked. Names of host and user are stand-ins in all that is written.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from triage.core.launch import LaunchSpec
from triage.core.probes.catalogue import PROBES
from triage.errors import TriageError
from triage.launch.process import ProcessTarget
from triage.render.documents import diagnosis_document
from triage.session.logs import classify
from triage.session.probe import Asked, run_all
from triage.session.reports import redactor

SCHEMA = "triage.gpu-record/1"
LIMIT_S = 60.0
NAMES = tuple(probe.name for probe in PROBES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provocation:
    """A short program that ends in one failure; `expected` is a text of its log."""

    name: str
    expected: tuple[str, ...]
    program: str
    env: tuple[tuple[str, str], ...] = ()
    gpus: int = 1


_PRODUCT = """
import torch
def product(device='cuda'):
    left = torch.randn(256, 256, device=device); return left @ left
"""
_FULL = """
def fill(leave_mib):
    held = []
    while True:
        free = torch.cuda.mem_get_info()[0] - leave_mib * 2**20
        if free < 2**21: return held
        held.append(torch.empty(free // 2**21 * 2**21, dtype=torch.uint8, device='cuda'))
"""
_CAPTURE = """
def capture(work):
    torch.cuda.synchronize(); graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): work()
"""
_RANKS = """
import os, torch, torch.distributed as dist, torch.multiprocessing as mp
def rank(number, count):
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT='29555', RANK=str(number), WORLD_SIZE=str(count))
    torch.cuda.set_device(number % torch.cuda.device_count()); dist.init_process_group('nccl')
    body(number)
"""
_SPAWN = "\nif __name__ == '__main__': mp.spawn(rank, (COUNT,), COUNT)\n"

PROVOCATIONS = (
    Provocation(
        name="cublas-not-initialized-no-memory",
        expected=("CUBLAS_STATUS_NOT_INITIALIZED", "CUBLAS_STATUS_ALLOC_FAILED", "out of memory"),
        program=f"{_PRODUCT}{_FULL}\nx = torch.randn(256, 256, device='cuda')\nheld = fill(0)\nx @ x\n",
    ),
    Provocation(
        name="cublas-in-cold-capture",
        expected=("CUBLAS_STATUS_", "when stream is capturing", "captured without a warm-up"),
        program=f"{_PRODUCT}{_CAPTURE}\nx = torch.randn(256, 256, device='cuda')\ncapture(lambda: x @ x)\n"
        "print('captured without a warm-up')\n",
    ),
    Provocation(
        name="cublas-after-illegal-access",
        expected=("illegal memory access", "CUBLAS_STATUS_", "device-side assert"),
        program=f"{_PRODUCT}\nx = torch.zeros(8, device='cuda')\n"
        "i = torch.full((4,), 2**40, dtype=torch.int64, device='cuda')\n"
        "torch.gather(x, 0, i)\nproduct()\ntorch.cuda.synchronize()\n",
    ),
    Provocation(
        name="cublas-invalid-value",
        expected=("CUBLAS_STATUS_INVALID_VALUE", "CUBLAS_STATUS_NOT_SUPPORTED", "divisible by 16"),
        program=f"{_PRODUCT}\nx = torch.randn(16, 8, device='cuda').to(torch.float8_e4m3fn)\n"
        "one = torch.ones((), device='cuda')\n"
        "torch._scaled_mm(x, x.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)\n",
    ),
    Provocation(
        name="capture-illegal-operation",
        expected=("when stream is capturing", "cudaErrorStreamCapture"),
        program=f"{_PRODUCT}{_CAPTURE}\nproduct(); x = torch.ones(4, device='cuda')\n"
        "capture(lambda: x.sum().item())\n",
    ),
    Provocation(
        name="capture-unjoined-stream",
        expected=("unjoined work", "cudaErrorStreamCaptureUnjoined"),
        program=f"{_PRODUCT}{_CAPTURE}\nproduct(); x = torch.ones(4, device='cuda')\n"
        "side = torch.cuda.Stream()\n"
        "def work():\n    side.wait_stream(torch.cuda.current_stream())\n"
        "    with torch.cuda.stream(side): x.add_(1)\ncapture(work)\n",
    ),
    Provocation(
        name="capture-out-of-memory",
        expected=("out of memory", "OutOfMemoryError"),
        program=f"{_PRODUCT}{_FULL}{_CAPTURE}\nproduct(); held = fill(8)\n"
        "capture(lambda: torch.empty(2**28, device='cuda'))\n",
    ),
    Provocation(
        name="nccl-duplicate-gpu",
        expected=("Duplicate GPU", "invalid usage", "same NVML device"),
        program=_RANKS.replace("number % torch.cuda.device_count()", "0")
        + "\ndef body(number):\n    x = torch.ones(4, device='cuda'); dist.all_reduce(x)\n"
        + _SPAWN.replace("COUNT", "2"),
        env=(("NCCL_DEBUG", "INFO"),),
    ),
    Provocation(
        name="nccl-mismatched-collective",
        expected=("mismatch", "Watchdog", "ran for", "NCCL WARN"),
        program=_RANKS.replace("'nccl')", "'nccl', timeout=__import__('datetime').timedelta(seconds=15))")
        + "\ndef body(number):\n    x = torch.ones(4, device='cuda')\n"
        "    if number == 0: dist.all_reduce(x)\n    torch.cuda.synchronize()\n"
        + _SPAWN.replace("COUNT", "2"),
        env=(("TORCH_NCCL_BLOCKING_WAIT", "1"),),
        gpus=2,
    ),
    Provocation(
        name="nccl-nvls-forced",
        expected=("NVLS comm", "Multicast", "NVLS multicast", "added up"),
        program=_RANKS + "\ndef body(number):\n    x = torch.ones(2**22, device='cuda'); dist.all_reduce(x)\n"
        "    torch.cuda.synchronize(); print('added up', flush=True)\n"
        + _SPAWN.replace("COUNT", "torch.cuda.device_count()"),
        env=(("NCCL_NVLS_ENABLE", "1"), ("NCCL_DEBUG", "INFO"), ("NCCL_DEBUG_SUBSYS", "INIT,NVLS")),
        gpus=2,
    ),
    Provocation(
        name="kernel-device-assert",
        expected=("device-side assert",),
        program=f"{_PRODUCT}\nw = torch.randn(4, 4, device='cuda')\n"
        "torch.nn.functional.embedding(torch.tensor([-1], device='cuda'), w)\n"
        "torch.cuda.synchronize()\n",
    ),
    Provocation(
        name="segv-native",
        expected=("SIGSEGV", "Segmentation fault"),
        program="import ctypes, faulthandler\nfaulthandler.enable()\nctypes.string_at(0)\n",
        gpus=0,
    ),
)  # fmt: skip


def record(
    python: str,
    folder: Path,
    *,
    provocations: Iterable[Provocation] = PROVOCATIONS,
    probes: Iterable[str] = NAMES,
    limit_s: float = LIMIT_S,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Run everything, write the folder, and give back what `machine.json` holds."""
    folder.mkdir(parents=True, exist_ok=True)
    clean = _cleaner(python)
    found: dict[str, Any] = {"schema": SCHEMA, "probes": {}, "provocations": {}}
    for name in probes:
        say(f"probe {name}")
        document = run_all(name, Asked(python=python, limit_s=limit_s))
        _write(folder / f"probe-{name}.json", json.dumps(document, indent=1), clean)
        found["probes"][name] = {
            "outcome": document["outcome"], "device": document["device"],
            "versions": document["versions"], "meaning": document["meaning"],
        }  # fmt: skip
    for one in provocations:
        say(f"provoke {one.name}")
        log = folder / f"{one.name}.log"
        raw, exit_code = provoke(python, one, limit_s)
        _write(log, raw.decode(errors="replace"), clean)
        diagnosis = diagnosis_document(classify(str(log)))
        found["provocations"][one.name] = {
            "exit_code": exit_code,
            "provoked": [text for text in one.expected if text in log.read_text()],
            "outcome": diagnosis["outcome"],
            "cause": diagnosis["cause"],
            "gpus": one.gpus,
        }
    _write(folder / "machine.json", json.dumps(found, indent=1), clean)
    kept: dict[str, Any] = json.loads((folder / "machine.json").read_text(encoding="utf-8"))
    return kept


def provoke(python: str, one: Provocation, limit_s: float) -> tuple[bytes, int | None]:
    """The output of the program, and its exit code; None: it was ended at the limit."""
    with TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"  # ranks import it again
        program.write_text(one.program, encoding="utf-8")
        spec = LaunchSpec(argv=(python, "-u", str(program)), env=one.env, port=0)
        target = ProcessTarget(spec)
        raw, deadline = b"", time.monotonic() + limit_s
        try:
            target.start()
            while time.monotonic() < deadline:
                chunk = target.logs(0.2)
                raw += chunk or b""
                if target.poll() is not None and not chunk:
                    break
            ended = target.poll()
        finally:
            target.close()
    return raw, ended.exit_code if ended else None


def _cleaner(python: str) -> Callable[[str], str]:
    """What takes names out of a text, and the places where this Python lies."""
    names = redactor()
    say_where = "import sys; print(sys.prefix); print(sys.base_prefix)"
    try:
        asked = subprocess.run(
            [python, "-c", say_where], capture_output=True, text=True, check=False
        ).stdout
    except OSError:
        asked = ""  # the first probe says what is wrong with it
    places = [place for place in asked.splitlines() if place.count("/") > 1]
    places += [str(Path(place).resolve()) for place in places]

    def clean(text: str) -> str:
        for place in sorted(set(places), key=len, reverse=True):
            text = text.replace(place, "/opt/venv")
        return names.text(text)

    return clean


def _write(path: Path, text: str, clean: Callable[[str], str]) -> None:
    ended = "" if text.endswith("\n") else "\n"
    path.write_text(clean(text) + ended, encoding="utf-8")


def summary(found: dict[str, Any]) -> str:
    """What came of it, a line each."""
    lines = [f"{name:24} {one['outcome']} on {one['device'] or 'no device'}"
             for name, one in found["probes"].items()]  # fmt: skip
    for name, one in found["provocations"].items():
        hit = ", ".join(one["provoked"]) or "not provoked"
        lines.append(f"{name:32} {hit} -> {one['cause'] or 'no cause'}")
    return "\n".join(lines)


def main(words: list[str]) -> int:
    """Record, and print what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="the engine's Python")
    parser.add_argument("--out", type=Path, default=Path("fixtures/gpu"))
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds of one step")
    told = parser.parse_args(words)
    try:
        found = record(told.python, told.out, limit_s=told.limit)
    except TriageError as error:
        print(f"error: {error.message}\n  try: {error.hint}", file=sys.stderr)
        return error.exit_code
    print(summary(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

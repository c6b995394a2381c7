"""Which of the real parts this machine has now, and a place of each kind to launch at."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from triage.core.launch import Container, Job, Place, Process, Unit

ENGINE = Path(__file__).parents[1] / "launch" / "fake_engine.py"
_HERE = Path(__file__).parent


def missing(kind: str) -> str:
    """Why launches of this kind cannot be made here; "" if they can."""
    match kind:
        case "systemd":
            runs = Path("/run/systemd/system").is_dir()
            return "" if runs else "systemd is not PID 1 (tests/parts/systemd_box.sh)"
        case "container":
            done = _asked([str(_HERE / "podman.sh"), "image"])
            return "" if done.returncode == 0 else f"podman: {done.stderr.strip()[-200:]}"
        case "slurm":
            done = _asked(["sinfo", "-h", "-t", "idle,alloc,mix,comp", "-o", "%D"])
            return "" if done.stdout.strip() == "2" else "no Slurm of two nodes (SLURM_CONF)"
        case _:
            return ""


def require(kind: str) -> None:
    """Skip the test with the reason; where all parts must be there, fail."""
    why = missing(kind)
    if why and kind in os.environ.get("TRIAGE_PARTS", "").split():
        pytest.fail(f"{kind} must be tested here: {why}")
    if why:
        pytest.skip(why)


def place(kind: str) -> Place:
    """Where a launch of this kind is made."""
    match kind:
        case "systemd":
            return Unit()
        case "container":
            return Container(run=tuple(_asked([str(_HERE / "podman.sh"), "words"]).stdout.split()))
        case "slurm":
            return Job(nodes=2, options=("--gpus-per-node=8", "--mem=1G"))
        case _:
            return Process()


def docker_here(folder: Path) -> dict[str, str]:
    """Variables with which `docker` is the podman of this machine."""
    done = _asked([str(_HERE / "podman.sh"), "docker", str(folder)])
    assert done.returncode == 0, done.stderr
    return {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "CONTAINERS_CONF": str(folder / "containers.conf"),
    }


def alive(port: int) -> list[str]:
    """The command lines of live processes of the fake engine on this port of this network."""
    found = []
    network = Path("/proc/self/ns/net").readlink()
    marks = (f"{ENGINE}\0{port}\0".encode(), f"port-{port}\0".encode())
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            state = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            words = (folder / "cmdline").read_bytes()
            if (
                state not in "ZXx"
                and any(mark in words for mark in marks)
                and b"podman" not in words
                and (folder / "ns" / "net").readlink() == network
            ):
                found.append(words.replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


def _asked(words: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(words, 127, "", str(error))


PYTHON = sys.executable

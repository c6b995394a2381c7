"""What a launch could leave on a machine: processes, listening ports, shared memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True)
class Traces:
    """A look at the machine; `beyond` names what came since an earlier one."""

    processes: frozenset[tuple[int, str]]
    ports: frozenset[int]
    shared_memory: frozenset[str]

    @classmethod
    def now(cls) -> Traces:
        """Processes that are alive and not our parents, ports that listen, /dev/shm."""
        found = set()
        for process in psutil.process_iter(["pid", "name", "status", "create_time"]):
            info = process.info
            if info["status"] != psutil.STATUS_ZOMBIE:
                found.add((info["pid"], f"{info['name']} {info['create_time']}"))
        return cls(frozenset(found), frozenset(listening()), frozenset(os.listdir("/dev/shm")))  # noqa: PTH208

    def beyond(self, before: Traces) -> list[str]:
        """What is there now, was not before, and looks like a part of a launch."""
        return sorted(
            [
                f"process {pid} {name}"
                for pid, name in self.processes - before.processes
                if is_ours(pid)
            ]
            + [f"port {port}" for port in self.ports - before.ports if holder_is_ours(port)]
            + [f"/dev/shm/{name}" for name in self.shared_memory - before.shared_memory]
        )


def is_ours(pid: int) -> bool:
    """Whether the process belongs to a launch: an engine, the guard, or what they started."""
    try:
        line = " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return False
    return any(word in line for word in ("sglang", "triage", "multiprocessing"))


def listening() -> dict[int, int | None]:
    """Port -> the process that listens on it, as far as it may be seen."""
    return {
        c.laddr.port: c.pid
        for c in psutil.net_connections("tcp")
        if c.status == psutil.CONN_LISTEN and c.laddr
    }


def holder_is_ours(port: int) -> bool:
    """Whether a process of a launch listens on the port."""
    pid = listening().get(port)
    return pid is not None and is_ours(pid)


def children_of(pid: int) -> list[int]:
    """Every descendant that is alive, whatever session it is in."""
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def alive(pids: list[int]) -> list[int]:
    """Those that still run: a zombie only waits to be counted."""
    running = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            running.append(pid)
    return running

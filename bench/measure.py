"""Times whole processes in turn, and watches the memory of one.

In:  argument lists. Out: seconds by the clock and of a processor, bytes.
Not: what is measured, and against what (__main__.py).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

Command = Sequence[str]


class Took(NamedTuple):
    """Seconds of a run, or medians of some: by the clock, and of a processor."""

    wall: float
    cpu: float


def in_turn(
    commands: Mapping[str, Command], rounds: int, *, cpu: int | None = None
) -> dict[str, Took]:
    """Medians for each command; one round runs all of them, so that they share luck.

    Args:
        commands: By name. Their output is thrown away.
        rounds: How often, after one that does not count.
        cpu: The processor that each is bound to, if any.
    """
    took: dict[str, list[Took]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            one = once(command, cpu=cpu)
            if number:
                took[name].append(one)
    return {
        name: Took(*(statistics.median(column) for column in zip(*values, strict=True)))
        for name, values in took.items()
    }


def once(command: Command, *, cpu: int | None = None) -> Took:
    """One run; its output is thrown away."""
    words = list(command) if cpu is None else ["taskset", "-c", str(cpu), *command]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    null = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    start = time.perf_counter()
    child = os.posix_spawnp(words[0], words, env, file_actions=(null, (os.POSIX_SPAWN_DUP2, 1, 2)))
    _, _, used = os.wait4(child, 0)
    return Took(time.perf_counter() - start, used.ru_utime + used.ru_stime)


def anonymous_bytes(command: Command) -> int:
    """The most anonymous memory that the process was seen with, asked every 2 ms."""
    most = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        status = Path(f"/proc/{child.pid}/status")
        while child.poll() is None:
            try:
                lines = status.read_text().splitlines()
            except OSError:
                break
            found = next((line for line in lines if line.startswith("RssAnon:")), "RssAnon: 0 kB")
            most = max(most, int(found.split()[1]) * 1024)
            time.sleep(0.002)
    return most


def best_of(tries: int, action: Callable[[], object]) -> Took:
    """The fastest of some calls, each time for itself: others may hold the processor."""
    found = []
    for _ in range(tries):
        start, used = time.perf_counter(), time.process_time()
        action()
        found.append((time.perf_counter() - start, time.process_time() - used))
    return Took(*map(min, zip(*found, strict=True)))


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of them lies."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]

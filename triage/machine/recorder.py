"""What the GPUs do while a server starts: five readings a second in a file, and their summary.

In:  a file to write, the phase that the launch is in. Out: JSON lines, GpuUse values.
Not: the regimes of a steady load (sampler.py), or judging.

The first line of the file names the columns; each further one is `[seconds, [row, ...]]` with a
row for each GPU, and is left out if nothing has changed since. What costs more or moves slowly
(tenants, error counters, links) is read once a second. Where a reading costs too much, as on a
busy driver, it is made less often, so that the whole takes less than a hundredth of a core.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import BinaryIO

from triage.core.evidence import GpuUse, Tenant
from triage.core.machine.facts import Unavailable, known_or
from triage.core.machine.gpus import Reading
from triage.machine.gpus import NO_DRIVER, NoNvmlError, Nvml, has_driver, open_nvml

HERTZ = 5.0
NONE = "none"  # no GPU
MOST_BYTES = 8 << 20  # two hours of eight busy GPUs
SHARE = 0.008  # of a core, above which it reads less often
COLUMNS = (
    "memory_mib", "busy_percent", "memory_busy_percent", "power_w", "sm_clock_mhz", "reasons",
    "temperature_c", "links_mib_s",
)  # fmt: skip
_HOST = 0xEFFFFFFC  # of the first PID namespace
_SLOW = 5  # readings for one of what is read once a second
# Reasons that slow a busy GPU down, in the order of nvml.h.
_SLOWDOWNS = (
    "power-cap", "hardware-slowdown", "thermal-slowdown", "hardware-thermal-slowdown",
    "power-brake",
)  # fmt: skip


class Recorder:
    """Reads from `begin` to `end`; both return at once where there is no GPU.

    `only` names the GPUs of a launch that has no others; empty means all.

    Attributes:
        missing: Why there is nothing, "" if there is.
        readings: How many were made, of all GPUs at once.
        share: Of one core that it used.
        capped: Whether the file was full before the end.
    """

    def __init__(
        self,
        path: Path,
        phase: Callable[[], str],
        *,
        only: Collection[int] = (),
        hertz: float = HERTZ,
    ) -> None:
        self._only = frozenset(only)
        self.missing = ""
        self.readings = 0
        self.share = 0.0
        self.capped = False
        self._path, self._phase, self._period = path, phase, 1 / hertz
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._uses: dict[int, _Use] = {}
        self._links: dict[int, tuple[float, int]] = {}

    def begin(self) -> None:
        """Start reading in the background."""
        if not has_driver():
            self.missing = NONE
            return
        self._thread = threading.Thread(target=self._run, name="triage-recorder", daemon=True)
        self._thread.start()

    def end(self, within_s: float = 3.0) -> None:
        """Stop; a driver that does not answer is not waited for longer than this."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(within_s)
            if self._thread.is_alive():
                self.missing = "the driver does not answer"

    def uses(self, ours: set[int]) -> tuple[GpuUse, ...]:
        """What each GPU showed; `ours` are the processes of the launch.

        Inside a container the driver numbers processes as its host does: without one of ours
        among them nobody is called foreign.
        """
        seen = {pid for use in self._uses.values() for pid in use.tenants}
        comparable = _numbered_as_the_host() or bool(seen & ours)
        return tuple(
            use.told(ours, seen if comparable else set()) for _, use in sorted(self._uses.items())
        )

    def _run(self) -> None:
        used, began = time.thread_time(), time.monotonic()
        try:
            with open_nvml() as nvml, self._opened() as file:
                self._start(nvml, file)
                while not self._over.wait(self._wait(used, began)):
                    self._read(nvml, file, time.monotonic() - began)
                self._read(nvml, file, time.monotonic() - began, slow=True)
        except NoNvmlError as error:
            self.missing = NONE if error.fact.reason == NO_DRIVER else error.fact.reason
        except OSError as error:
            self.missing = f"its file cannot be written: {error.strerror}"
        seconds = time.monotonic() - began
        self.share = round((time.thread_time() - used) / seconds, 4) if seconds > 0 else 0.0

    def _opened(self) -> BinaryIO:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(os.open(self._path, flags, 0o600), "wb", buffering=1 << 14)

    def _wait(self, used: float, began: float) -> float:
        """Seconds until the next reading: longer, if the readings so far cost too much."""
        busy = time.thread_time() - used
        due = busy / SHARE - (time.monotonic() - began)
        return min(max(self._period, due), 5.0) if self.readings > _SLOW else self._period

    def _start(self, nvml: Nvml, file: BinaryIO) -> None:
        every = [one for one in nvml.readings() if not self._only or one.index in self._only]
        if not every:
            self.missing = "the driver sees no GPU"
            self._over.set()
            return
        names = nvml.names()
        self._uses = {one.index: _Use(one, names.get(one.index, "")) for one in every}
        head = {"columns": COLUMNS, "gpus": [names.get(one.index, "") for one in every]}
        self._size = file.write(json.dumps(head).encode() + b"\n")
        self._last = b""
        self._slow(nvml)

    def _read(self, nvml: Nvml, file: BinaryIO, at: float, *, slow: bool = False) -> None:
        every = nvml.quick_readings()
        self.readings += 1
        phase = self._phase()
        slow = slow or self.readings % _SLOW == 0
        rates = self._link_rates(nvml, at) if slow else {}
        rows = []
        for one in every:
            if (use := self._uses.get(one.index)) is not None:
                use.take(one, at, phase)
                rows.append([*_row(one), rates.get(one.index)])
        if slow:
            self._slow(nvml)
        text = json.dumps(rows, separators=(",", ":")).encode()
        if text == self._last or self.capped:
            return
        self._last = text
        self._size += file.write(b"[%.2f,%b]\n" % (at, text))
        if slow:
            file.flush()
        self.capped = self._size > MOST_BYTES

    def _slow(self, nvml: Nvml) -> None:
        for holder in nvml.holders():
            if (use := self._uses.get(holder.index)) is not None:
                use.tenants[holder.pid] = Tenant(
                    pid=holder.pid,
                    name=Path(holder.command.split(" ")[0]).name[:60],
                    memory_mib=known_or(holder.memory_mib, None),
                )
        for index, errors in nvml.errors().items():
            if (use := self._uses.get(index)) is not None:
                use.errors = (use.errors or (errors, errors))[0], errors
        for index, code in nvml.xids():
            if (use := self._uses.get(index)) is not None:
                use.xids.append(code)

    def _link_rates(self, nvml: Nvml, at: float) -> dict[int, int]:
        """MiB a second over the links, both directions, since the last look."""
        found = {}
        for index, total in nvml.link_bytes().items():
            before, seen = self._links.get(index, (at, total))
            if at > before and total >= seen:
                found[index] = int((total - seen) / (at - before) / (1 << 20))
                if (use := self._uses.get(index)) is not None:
                    use.links_mib_s = max(use.links_mib_s or 0, found[index])
            self._links[index] = (at, total)
        return found


class _Use:
    """What one GPU has shown so far."""

    def __init__(self, first: Reading, name: str) -> None:
        self.index, self.name = first.index, name
        self.before_mib = known_or(first.memory_used_mib, None)
        self.peak_mib = self.before_mib
        self.peak_phase = ""
        self.peak_at = 0.0
        self.power_w = known_or(first.power_w, None)
        self.limit_w = known_or(first.power_limit_w, None)
        self.slowed: dict[str, float] = {}
        self.tenants: dict[int, Tenant] = {}
        self.errors: tuple[int, int] | None = None
        self.xids: list[int] = []
        self.links_mib_s: int | None = None
        self.lost = ""
        self._at = 0.0

    def take(self, one: Reading, at: float, phase: str) -> None:
        if isinstance(one.memory_used_mib, Unavailable):
            self.lost = self.lost or one.memory_used_mib.reason
        elif self.peak_mib is None or one.memory_used_mib > self.peak_mib:
            self.peak_mib, self.peak_phase, self.peak_at = one.memory_used_mib, phase, at
        power = known_or(one.power_w, None)
        if power is not None:
            self.power_w = max(self.power_w or 0.0, power)
        for reason in known_or(one.reasons, ()):
            if reason in _SLOWDOWNS:
                self.slowed[reason] = self.slowed.get(reason, 0.0) + at - self._at
        self._at = at

    def told(self, ours: set[int], known: set[int]) -> GpuUse:
        errors = self.errors[1] - self.errors[0] if self.errors else None
        return GpuUse(
            index=self.index,
            name=self.name,
            before_mib=self.before_mib,
            peak_mib=self.peak_mib,
            peak_phase=self.peak_phase,
            peak_s=round(self.peak_at, 1),
            power_w=None if self.power_w is None else round(self.power_w),
            power_limit_w=None if self.limit_w is None else round(self.limit_w),
            slowed=tuple((name, round(s, 1)) for name, s in sorted(self.slowed.items())),
            links_mib_s=self.links_mib_s,
            ecc_errors=errors,
            xids=tuple(self.xids),
            tenants=tuple(one for pid, one in sorted(self.tenants.items()) if pid in ours),
            foreign=tuple(one for pid, one in sorted(self.tenants.items()) if pid in known - ours),
            lost=self.lost,
        )


def _numbered_as_the_host() -> bool:
    """Whether processes have the same numbers here as on the host. Source: PROC_PID_INIT_INO."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino == _HOST
    except OSError:
        return False


def _row(one: Reading) -> list[int | str | None]:
    power = known_or(one.power_w, None)
    reasons = known_or(one.reasons, None)
    return [
        known_or(one.memory_used_mib, None),
        known_or(one.busy_percent, None),
        known_or(one.memory_busy_percent, None),
        None if power is None else round(power),
        known_or(one.sm_clock_mhz, None),
        None if reasons is None else "+".join(reasons),
        known_or(one.temperature_c, None),
    ]

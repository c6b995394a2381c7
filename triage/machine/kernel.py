"""What the kernel says and refuses: NVIDIA's errors in its log, calls that a container forbids.

In:  /dev/kmsg or the log files of `root`; system calls that change nothing. Out: Xids, errnos;
     what the kernel said while something ran.
Not: judging which Xid is the machine's fault (triage.core.doctor.gpu_checks).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import subprocess
import time
from pathlib import Path

from triage.core.machine.facts import Fact, Unavailable
from triage.core.machine.host import Xid

_MOST = 4 << 20
# NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, name=python, GPU has fallen off the bus.
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+), ?(.*)")
# Kills for memory, NVIDIA's driver, faults of processes, stuck tasks, machine checks, disks.
_TELLING = re.compile(
    r"oom-kill:|invoked oom-killer|Out of memory|out of memory|Killed process|oom_reaper"
    r"|NVRM|\bS?Xid\b|nvidia|nvswitch|segfault at|general protection|trap invalid opcode|traps: "
    r"|blocked for more than|hung_task|soft lockup|Hardware Error|mce: |AER: |I/O error"
    r"|EXT4-fs error|XFS .*error|No space left|nfs: server|page allocation failure"
)
_JOURNAL = re.compile(r"(?m)^\[ *(\d+\.\d+)\] \S+ kernel: ")
_JOURNAL_S = 3.0
_MOST_LINES = 200
_LOGS = ("var/log/kern.log", "var/log/messages", "var/log/syslog")
# Source: the kernel's tables of system calls
_NUMBERS = {
    "x86_64": {"set_mempolicy": 238, "clone3": 435},
    "aarch64": {"set_mempolicy": 237, "clone3": 435},
}
_DENIED = (errno.EPERM, errno.EACCES)


def xids(root: Path) -> Fact[tuple[Xid, ...]]:
    """Every Xid in the kernel's ring buffer, else in the log files; oldest first."""
    text = _ring(root / "dev/kmsg")
    if isinstance(text, Unavailable):
        for name in _LOGS:
            try:
                with (root / name).open("rb") as file:
                    file.seek(max(0, os.fstat(file.fileno()).st_size - _MOST))
                    return _found(file.read().decode(errors="replace"))
            except OSError:
                continue
        return text
    return _found(text, _uptime(root))


def _ring(path: Path) -> str | Unavailable:
    """The records of /dev/kmsg without waiting for new ones; a plain file is read as it is."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return Unavailable(f"the kernel log cannot be read: {error.strerror}", "sudo dmesg")
    try:
        return _records(handle)
    finally:
        os.close(handle)


def _records(handle: int) -> str | Unavailable:
    """All records from where the handle stands."""
    parts: list[bytes] = []
    size = 0
    while size < _MOST:
        try:
            record = os.read(handle, 8192)
        except BlockingIOError:
            break
        except BrokenPipeError:  # records were overwritten while we read
            continue
        except OSError as error:
            if not parts:
                return Unavailable(f"the kernel log cannot be read: {error.strerror}")
            break
        if not record:
            break
        parts.append(record)
        size += len(record)
    return b"".join(parts).decode(errors="replace")


class KernelLog:
    """What the kernel says from now on, as far as this user may read it.

    Its ring buffer is opened at its end, so that what is read is what came since: no clocks are
    compared. Where it may not be opened, the journal is asked instead.
    """

    def __init__(self, path: Path = Path("/dev/kmsg")) -> None:
        self._began = time.time()
        self._handle = -1
        self._why = ""
        try:
            self._handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._handle, 0, os.SEEK_END)
        except OSError as error:
            self._why = f"the kernel log cannot be read: {error.strerror}"

    def lines(self) -> tuple[str, ...] | Unavailable:
        """The lines since that a failure may come from, as dmesg prints them; once."""
        if self._handle < 0:
            return self._asked()
        handle, self._handle = self._handle, -1
        self._why = "it was read already"
        try:
            text = _records(handle)
        finally:
            os.close(handle)
        return text if isinstance(text, Unavailable) else telling(text)

    def close(self) -> None:
        """Let go of it unread."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _asked(self) -> tuple[str, ...] | Unavailable:
        words = ["journalctl", "-k", "-q", "--no-pager", "-o", "short-monotonic"]
        try:
            done = subprocess.run(
                [*words, f"--since=@{int(self._began)}"],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                timeout=_JOURNAL_S, check=True,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            return Unavailable(self._why, "sudo dmesg")
        return telling(_JOURNAL.sub(r"[\1] ", done.stdout))


def telling(text: str) -> tuple[str, ...]:
    """Those lines of the kernel's that a failure of a server may come from, as dmesg prints them.

    Everything else that it says is nobody's business; at most 200.
    """
    found = []
    for line in text.split("\n"):
        head, _, said = line.partition(";")
        stamp = head.split(",")
        if len(stamp) > 2 and stamp[2].isdecimal():  # noqa: PLR2004  a record of the ring buffer
            seconds, micro = divmod(int(stamp[2]), 1_000_000)
            line = f"[{seconds:5d}.{micro:06d}] {said}"  # noqa: PLW2901
        if _TELLING.search(line):
            found.append("".join(letter if letter.isprintable() else " " for letter in line)[:400])
    return tuple(found[:_MOST_LINES])


def _found(text: str, uptime_s: float | None = None) -> tuple[Xid, ...]:
    found = []
    for line in text.split("\n"):
        if match := _XID.search(line):
            # 3,1234,56789012,-;NVRM: ...: the third word is microseconds since the boot
            stamp = line.partition(";")[0].split(",")
            age: Fact[float] = Unavailable("the log does not tell when")
            if uptime_s is not None and len(stamp) > 2 and stamp[2].isdecimal():  # noqa: PLR2004
                age = max(0.0, uptime_s - int(stamp[2]) / 1e6)
            said = match[0].strip()[:160]
            found.append(Xid(device=match[1], code=int(match[2]), text=said, age_s=age))
    return tuple(found)


def _uptime(root: Path) -> float | None:
    """Seconds since the boot."""
    try:
        return float((root / "proc/uptime").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def refused_calls() -> dict[str, Fact[str]]:
    """Call -> the errno with which it is forbidden, "" if it is allowed.

    Neither call does anything: the policy set is the default that this process has,
    and clone3 is given a size that the kernel refuses before it starts anything.
    """
    numbers = _NUMBERS.get(platform.machine()) if platform.system() == "Linux" else None
    if numbers is None:
        unknown = Unavailable(f"system calls of {platform.machine()} are not known here")
        return {"set_mempolicy": unknown, "clone3": unknown}
    try:
        libc = ctypes.CDLL(None, use_errno=True)
    except OSError as error:
        return dict.fromkeys(numbers, Unavailable(str(error)))
    zero = ctypes.c_long(0)
    return {name: _refused(libc, ctypes.c_long(number), zero) for name, number in numbers.items()}


def _refused(libc: ctypes.CDLL, number: ctypes.c_long, zero: ctypes.c_long) -> str:
    ctypes.set_errno(0)
    if libc.syscall(number, zero, zero, zero) == -1 and ctypes.get_errno() in _DENIED:
        return errno.errorcode[ctypes.get_errno()]
    return ""

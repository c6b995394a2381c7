"""The kernel's lines of a time: which are kept, and what is said where they cannot be read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from triage.core.machine.facts import Unavailable
from triage.machine import kernel
from triage.machine.kernel import KernelLog, telling

RING = (
    "6,900,812000001,-;usb 1-1: new device\n"
    "4,901,812000002,-;python invoked oom-killer: gfp_mask=0xcc0\n"
    " SUBSYSTEM=memory\n"
    "3,902,812000003,-;Out of memory: Killed process 43 (python) total-vm:9kB\n"
    "3,903,1813500000,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=43, GPU has fallen off the bus.\n"
    "6,904,1813500001,-;audit: user alice logged in\n"
    "6,905,1813500002,-;python[43]: segfault at 0 ip 0 sp 0 error 4\x1b[31m\n"
)


def test_only_what_a_failure_may_come_from_is_kept_as_dmesg_prints_it() -> None:
    assert telling(RING) == (
        "[  812.000002] python invoked oom-killer: gfp_mask=0xcc0",
        "[  812.000003] Out of memory: Killed process 43 (python) total-vm:9kB",
        "[ 1813.500000] NVRM: Xid (PCI:0000:1b:00): 79, pid=43, GPU has fallen off the bus.",
        "[ 1813.500002] python[43]: segfault at 0 ip 0 sp 0 error 4 [31m",
    )


def test_a_flood_is_cut() -> None:
    assert len(telling("3,1,1,-;NVRM: x\n" * 1000)) == 200


def test_only_what_comes_after_the_beginning_counts(tmp_path: Path) -> None:
    ring = tmp_path / "kmsg"
    ring.write_text(RING)
    log = KernelLog(ring)
    with ring.open("a") as file:
        file.write("3,906,1900000000,-;NVRM: Xid (PCI:0000:1b:00): 31, new\n")
    assert log.lines() == ("[ 1900.000000] NVRM: Xid (PCI:0000:1b:00): 31, new",)
    log.close()


def test_where_neither_may_be_read_the_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", none)
    told = KernelLog(tmp_path / "none").lines()
    assert isinstance(told, Unavailable)
    assert told.reason == "the kernel log cannot be read: No such file or directory"


def test_the_journal_is_asked_where_the_ring_may_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "journalctl"
    program.write_text(
        "#!/bin/sh\necho '[ 812.000003] host kernel: Out of memory: Killed process 43 (python)'\n"
        "echo '[ 812.000004] host kernel: usb 1-1: new device'\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert KernelLog(tmp_path / "none").lines() == (
        "[812.000003] Out of memory: Killed process 43 (python)",
    )


@pytest.mark.skipif(not os.access("/dev/kmsg", os.W_OK), reason="/dev/kmsg cannot be written")
def test_the_real_ring_gives_a_line_that_was_just_written() -> None:
    log = KernelLog()
    words = "triage-test: Out of memory: no process at all"
    try:
        Path("/dev/kmsg").write_text(f"<4>{words}\n")
    except OSError as error:
        pytest.skip(f"/dev/kmsg: {error.strerror}")
    told = log.lines()
    assert not isinstance(told, Unavailable)
    assert [line for line in told if words in line]
    assert isinstance(log.lines(), Unavailable | tuple)


def test_it_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel.KernelLog, "_asked", lambda self: Unavailable(self._why))
    ring = tmp_path / "kmsg"
    ring.write_text("")
    log = KernelLog(ring)
    assert log.lines() == ()
    assert log.lines() == Unavailable("it was read already")

"""A launch of the fake engine, and what is left of it."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from small_disk import small_disk

from triage.core.launch import Capture, LaunchSpec, Patience
from triage.launch import Server, free_port, launch, sockets, tree

ENGINE = str(Path(__file__).with_name("fake_engine.py"))
PATIENT = Patience(silent_s=20, total_s=30)


@dataclass
class LineWatcher:
    """READY and FATAL lines count; `phase NAME` is a landmark; a hook sees each chunk.

    Those of `ranks` are unheard whose name has not begun a line.
    """

    hook: Callable[[bytes], None] = lambda _: None
    phase: str = "unknown"
    ready_line: int = 0
    fatal_line: int = 0
    seen: bytes = b""
    ranks: frozenset[str] = frozenset()

    def feed(self, raw: bytes) -> None:
        self.seen += raw
        for number, line in enumerate(self.seen.split(b"\n")[:-1], start=1):
            if line.startswith(b"phase "):
                self.phase = line.split()[1].decode()
            elif line.startswith(b"READY"):
                self.ready_line = self.ready_line or number
            elif line.startswith(b"FATAL"):
                self.fatal_line = self.fatal_line or number
        self.hook(raw)

    def unheard(self) -> frozenset[str]:
        return frozenset(rank for rank in self.ranks if f"\n{rank} ".encode() not in self.seen)


@dataclass
class Bench:
    """Launches the fake engine; `events` and `watcher` are of the last launch."""

    folder: Path
    port: int
    watcher: LineWatcher = field(default_factory=LineWatcher)
    events: list[str] = field(default_factory=list)

    def spec(self, *words: str, patience: Patience = PATIENT, **changes: object) -> LaunchSpec:
        values: dict[str, object] = {
            "argv": (sys.executable, ENGINE, str(self.port), *words),
            "port": self.port,
            "patience": patience,
        }
        return LaunchSpec(**(values | changes))  # type: ignore[arg-type]

    def launch(
        self,
        *words: str,
        patience: Patience = PATIENT,
        while_ready: Callable[[Server], None] | None = None,
        stop_grace_s: float = 5.0,
        **changes: object,
    ) -> Capture:
        return launch(
            self.spec(*words, patience=patience, **changes),
            self.folder,
            self.watcher,
            while_ready=while_ready,
            on_event=self.events.append,
            stop_grace_s=stop_grace_s,
        )

    def log(self) -> str:
        return (self.folder / "server.log").read_text()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A bench on a free port; afterwards no process, listener or TMPDIR is left."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/tmp") as temporary:
        monkeypatch.setenv("TMPDIR", temporary)
        monkeypatch.setattr(tempfile, "tempdir", None)
        with free_port() as port:
            yield Bench(tmp_path / "launch", port)
            assert sockets.listeners(port) == ()
        assert alive_below(os.getpid()) == []
        assert alive_with(str(tmp_path)) == []
        assert list(Path(temporary).iterdir()) == []


@pytest.fixture
def small_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that takes 1 MiB; where no disk can be mounted, a file that takes as much."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder, size=1 << 20, largest_file=1 << 20):
        yield folder


def alive_below(pid: int) -> list[tree.Proc]:
    """Live descendants of a process."""
    return [proc for proc in tree.descendants([pid], tree.table()) if proc.alive]


def alive_with(token: str) -> list[tree.Proc]:
    """Live processes other than this one that have the token in their command line."""
    found = []
    for proc in tree.table().values():
        try:
            words = Path(f"/proc/{proc.pid}/cmdline").read_text(errors="replace")
        except OSError:
            continue
        if token in words and proc.alive and proc.pid != os.getpid():
            found.append(proc)
    return found


def wait_until(condition: Callable[[], object], within_s: float = 10.0) -> None:
    """Return once the condition holds; fail after `within_s`."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)

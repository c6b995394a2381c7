"""Servers that fail in every way, under a triage that is itself ended, at each target.

    python tests/parts/torture.py [--full] [--sections process,systemd] [--table docs/torture.md]

One cell is a bisection of one flag, `--misbehave KIND`: triage is left alone, or gets a signal while
that flag is tried; then the same command goes on. In each cell: the verdict is the expected one,
nothing of the launch is alive two seconds after, the journal is readable, and the resumed search
answers. Exit 1 if a cell fails. Without --full other tests run beside it, and a cell that is only
late is played again, twice at most, which is said. What a launch is, a token in its command line tells, so that several
cells can be played at a time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]

from parts import missing, place  # noqa: E402
from torture_rows import FATES, HOST_KINDS, KINDS, SECTIONS, Cell, cells, commit, table  # noqa: E402

from triage.core.launch import Container  # noqa: E402

ENGINE = HERE / "torture_engine.py"
GONE_S = 2.0
_TOO_LATE = "too late: "
_WENT_S = 15.0  # what is gone by then was late, what is not was left
_AGAIN = 2  # times that a cell which is only late is played again beside other tests
HOST = 4  # the exit code for: this machine cannot do it
# Where control groups of version 1 are found: as usual, or where they were mounted for this.
V1 = (Path("/run/triage-v1"), Path("/sys/fs/cgroup"))
_UNIT_TEXT = """[Service]
ExecStart={python} -S -c "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(1e6)"
TimeoutStopSec=1
"""
_COMPILING = threading.Lock()


class Stage:
    """One cell: a folder, a token, and a triage that runs there."""

    def __init__(self, folder: Path, kind: str, section: str) -> None:
        self.folder, self.kind, self.section = folder, kind, section
        self.target = SECTIONS[section][0]
        self.token = f"tortured-{secrets.token_hex(4)}"
        self.session = folder / "s"
        self.unit = f"{self.token}.service" if kind == "take-over-a-unit" else ""

    def recipe(self) -> Path:
        """A baseline that starts, and the one flag."""
        where = place(self.target)
        words = list(where.run) if isinstance(where, Container) else []
        env = {}
        if self.kind == "keep-gpu-memory":
            env["FAKE_NVML_HELD"] = str(self.folder / "held")
        if words:
            words[-1:-1] = self.given_to_the_container()
        elif controller := {"get-killed-for-memory": "memory", "freeze": "freezer"}.get(self.kind):
            v1(controller)
        path = self.folder / "recipe.yaml"
        misbehave = "crash-at-load" if self.unit else self.kind
        path.write_text(
            f"""schema: triage.recipe/1
name: torture
launch:
  target: {self.target}
  container: {json.dumps(words)}
  nodes: {2 if self.target == "slurm" else 1}
  command: [{json.dumps(sys.executable)}, {json.dumps(str(ENGINE))}]
  env: {json.dumps(env)}
  patience: {{silent: 5s, total: 60s}}
baseline: {{flags: {{model-path: {self.token}}}}}
wanted:
  - {{flag: misbehave, value: {misbehave}}}
goal: all
"""
        )
        return path

    def given_to_the_container(self) -> list[str]:
        """What the kind needs there: a limit, a control group, a folder."""
        match self.kind:
            case "get-killed-for-memory":
                return ["--memory", "150m"]
            case "freeze":
                return ["--volume", f"{v1('freezer')}:/run/triage-v1/freezer"]
            case "keep-gpu-memory":
                return ["--volume", f"{self.folder}/held:{self.folder}/held"]
            case _:
                return []

    def bisect(self) -> subprocess.Popen[str]:
        """One triage in a process of its own."""
        words = [
            *(_without_group() if self.section == "process-by-process" else []),
            *(sys.executable, "-m", "triage", "bisect", str(self.recipe())),
            *("--session", str(self.session), "--rungs", "full", "--no-doctor", "--json"),
            *(["--take-over", self.unit] if self.unit else []),
        ]
        return subprocess.Popen(
            words,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"} | self.surroundings(),
            start_new_session=True,
        )  # fmt: skip

    def surroundings(self) -> dict[str, str]:
        """What the machine is like for this kind: variables for triage and its server."""
        if self.unit and not Path(f"/run/systemd/system/{self.unit}").exists():
            text = _UNIT_TEXT.format(python=sys.executable)
            Path(f"/run/systemd/system/{self.unit}").write_text(text)
            _run("systemctl", "daemon-reload")
            _run("systemctl", "start", self.unit)
        if self.kind == "fill-the-disk" and not self.session.exists():
            self.session.mkdir()
            _run("mount", "-t", "tmpfs", "-o", "size=6m", "triage", str(self.session))
        if self.kind != "keep-gpu-memory":
            return {}
        (self.folder / "held").mkdir(exist_ok=True)
        (self.folder / "gpus").touch()
        return {
            "LD_LIBRARY_PATH": str(nvml().parent),
            "FAKE_NVML": str(self.folder / "gpus"),
            "FAKE_NVML_HELD": str(self.folder / "held"),
        }

    def mend(self) -> None:
        """Make the machine well again."""
        if self.kind == "fill-the-disk":
            _run("mount", "-o", "remount,size=400m", str(self.session))
        for file in (self.folder / "held").glob("*.leak"):
            file.unlink()

    def clear(self) -> None:
        """Take away what is left of the cell, so that no other has it."""
        self.thaw()
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if os.path.ismount(self.session):
            _run("umount", "-l", str(self.session))
        if self.unit:
            _run("systemctl", "kill", "-s", "KILL", self.unit)
            _run("systemctl", "stop", self.unit)
            Path(f"/run/systemd/system/{self.unit}").unlink(missing_ok=True)
            _run("systemctl", "daemon-reload")

    def play(self, number: int) -> str:
        """What is wrong, or "" """
        triage = self.bisect()
        if number:
            trial = self.session / "trials" / "002" / "server.log"
            _until(lambda: triage.poll() is not None or _size(trial) > 0, 60)
            time.sleep(0.3)
            if self.unit and self.unit_runs():
                return "the unit was not stopped"
            if triage.poll() is None:
                os.kill(triage.pid, number)
        errors = self.ended(triage)
        if wrong := self.left() or self.unreadable() or _ours(errors):
            return wrong
        if self.kind in HOST_KINDS and not number and triage.returncode != HOST:
            return f"exit {triage.returncode} instead of {HOST}: {errors.strip()[-150:]}"
        if number or self.kind in HOST_KINDS:
            self.mend()
            errors = self.ended(self.bisect())
            if wrong := self.left() or self.unreadable() or _ours(errors):
                return f"resumed: {wrong}"
        elif self.kind == "freeze" and not (self.told_stuck() and triage.returncode == HOST):
            return f"a process that could not be ended is not told (exit {triage.returncode})"
        return self.shown(errors) or self.wrong_way()

    def ended(self, triage: subprocess.Popen[str]) -> str:
        """Wait for its end; what it said on stderr. A frozen server is let go once it gave up."""
        if self.kind == "freeze":
            _until(lambda: triage.poll() is not None or self.waits_for_kill(), 60)
            _until(lambda: triage.poll() is not None, 90)  # it gives up, and tells
            self.thaw()
        return triage.communicate(timeout=150)[1]

    def shown(self, errors: str) -> str:
        """What is wrong with the verdicts."""
        text = (self.session / "journal.jsonl").read_text()
        entries = [json.loads(line) for line in text.splitlines()]
        shown = {entry["seen"] for entry in entries if entry.get("items")}
        if not shown & set(KINDS[self.kind].split("|")):
            return f"verdict {sorted(shown)} instead of {KINDS[self.kind]}; {errors.strip()[-150:]}"
        return ""

    def wrong_way(self) -> str:
        """Whether a process was ended in another way than this section is about."""
        if self.target != "process":
            return ""
        mark = "no control group of its own" if self.section != "process" else "cgroup.kill"
        told = [json.loads(p.read_text()) for p in self.session.glob("trials/*/exit.json")]
        other = [one for one in told if not any(mark in line for line in one["said"])]
        return "a launch was not ended in this section's way" if other or not told else ""

    def left(self) -> str:
        """What of the launch is still there, too late."""
        for what, left in (("processes", self.alive), ("shared-memory segments", self.files)):
            if not _empty(left, GONE_S):
                return f"{_TOO_LATE if _empty(left, _WENT_S) else ''}{what} are left"
        if self.unit and not _until(self.unit_runs, 15):
            return "the unit does not run again"
        return ""

    def files(self) -> list[Path]:
        return list(Path("/dev/shm").glob(f"{self.token}-*"))

    def unit_runs(self) -> bool:
        return _run("systemctl", "is-active", self.unit).stdout.strip() == "active"

    def told_stuck(self) -> bool:
        """Whether a launch's account names a process that survived SIGKILL for a while."""
        told = [json.loads(path.read_text()) for path in self.session.glob("trials/*/exit.json")]
        return any(one.get("stuck") for one in told)

    def unreadable(self) -> str:
        try:
            for line in (self.session / "journal.jsonl").read_text().splitlines():
                json.loads(line)
        except (OSError, ValueError) as error:
            return f"the journal is not readable: {error}"
        return ""

    def waits_for_kill(self) -> bool:
        """Whether SIGKILL is pending for the frozen engine."""
        for folder in self.groups():
            with contextlib.suppress(OSError):
                pids = map(int, (folder / "cgroup.procs").read_text().split())
                if any(_state(pid) == "D" and _pending_kill(pid) for pid in pids):
                    return True
        return False

    def groups(self) -> Iterable[Path]:
        return [g for one in V1 for g in one.glob(f"*/{self.token}-*")]

    def thaw(self) -> None:
        """Let every frozen engine go, and remove the groups that engines made."""
        for folder in self.groups():
            with contextlib.suppress(OSError):
                (folder / "freezer.state").write_text("THAWED")
            for _ in range(20):
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                time.sleep(0.05)

    def alive(self) -> list[int]:
        """Engines of this cell and their daemons that live."""
        return list(_holding(self.token.encode()))


def play(kind: str, fate: str, section: str) -> Cell:
    """One cell."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="triage-torture-", ignore_cleanup_errors=True) as name:
        stage = Stage(Path(name), kind, section)
        try:
            wrong = stage.play(FATES[fate])
        except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
            wrong = f"{type(error).__name__}: {error}"[:120]
        finally:
            stage.clear()
    return Cell(kind, fate, section, wrong, time.monotonic() - began, commit())


def v1(controller: str) -> Path:
    """The hierarchy of this controller; mounted for this where it is not."""
    for one in V1:
        if (one / controller / "cgroup.procs").exists():
            return one / controller
    mine = V1[0] / controller
    mine.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "cgroup", "-o", controller, "cgroup", str(mine))
    return mine


def nvml() -> Path:
    """The stand-in for the library, built once."""
    library = Path(tempfile.gettempdir()) / f"triage-nvml-{os.getpid()}" / "libnvidia-ml.so.1"
    with _COMPILING:
        if not library.exists():
            library.parent.mkdir()
            words = ["gcc", "-shared", "-fPIC", "-O1", "-Wl,-soname,libnvidia-ml.so.1"]
            _run(*words, "-o", str(library), str(HERE / "nvml" / "fake_nvml.c"))
    return library


def _without_group() -> list[str]:
    """Words that run a command where no control group of version 2 can be made."""
    places = [
        line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()
        if line.split()[2] == "cgroup2"
    ]  # fmt: skip
    hide = "".join(
        f"mount --bind {place} {place}; mount -o remount,bind,ro {place}; " for place in places
    )
    return ["unshare", "--mount", "sh", "-c", f'{hide}exec "$@"', "sh"]


def _ours(errors: str) -> str:
    """A traceback of triage itself."""
    last = errors.strip().splitlines()[-1:]
    return f"a traceback of ours: {last[0]}" if "Traceback" in errors else ""


def _holding(token: bytes) -> Iterator[int]:
    """Live servers and daemons with the token in their command line."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError, IndexError):
            words = (folder / "cmdline").read_bytes()
            others = b"podman" in words or b"triage\0bisect" in words
            if token in words and not others and _state(int(folder.name)) not in ("Z", "X", ""):
                yield int(folder.name)


def _state(pid: int) -> str:
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def _pending_kill(pid: int) -> bool:
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        masks = [
            int(line.split()[1], 16) for line in lines if line.startswith(("SigPnd", "ShdPnd"))
        ]
        return any(mask >> (signal.SIGKILL - 1) & 1 for mask in masks)
    return False


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0


def _until(done: Callable[[], bool], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _empty(left: Callable[[], Sized], within_s: float) -> bool:
    return _until(lambda: not left(), within_s)


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=90, check=False)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Play the cells that this machine can, and print each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--sections", default=",".join(SECTIONS))
    parser.add_argument("--only", default="", help="some kinds")
    parser.add_argument("--jobs", type=int, default=1, help="how many cells at a time")
    parser.add_argument("--cells", type=Path, help="a file of played cells; those are not played")
    parser.add_argument("--table", type=Path, help="write the page of all cells of that file")
    args = parser.parse_args()
    known = [Cell(**json.loads(line)) for line in _lines(args.cells)]
    have = {(cell.kind, cell.fate, cell.section) for cell in known if not cell.wrong}
    sections = []
    for section in filter(None, args.sections.split(",")):
        if why := missing(SECTIONS[section][0]):
            _say(f"{section}: not here: {why}")
            if SECTIONS[section][0] in os.environ.get("TRIAGE_PARTS", "").split():
                return 1
        else:
            sections.append(section)
    todo = [
        cell for cell in cells(full=args.full, sections=sections)
        if (not args.only or cell[0] in args.only.split(",")) and cell not in have
    ]  # fmt: skip
    done = []
    with ThreadPoolExecutor(args.jobs) as pool:
        for cell in pool.map(lambda words: _play(words, 0 if args.full else _AGAIN), todo):
            line = f"{cell.section:18} {cell.kind:22} {cell.fate:8} {cell.wrong or 'ok'}"
            _say(f"{line} ({cell.seconds:.1f} s)")
            done.append(cell)
            if args.cells:
                with args.cells.open("a") as file:
                    file.write(json.dumps(vars(cell)) + "\n")
    shutil.rmtree(Path(tempfile.gettempdir()) / f"triage-nvml-{os.getpid()}", ignore_errors=True)
    if args.table:
        latest = {(cell.kind, cell.fate, cell.section): cell for cell in (*known, *done)}
        args.table.write_text(table(list(latest.values()), full=args.full))
    return int(any(cell.wrong for cell in done))


def _play(words: tuple[str, str, str], again: int) -> Cell:
    """Play a cell, and again if it is only late."""
    cell = play(*words)
    while _TOO_LATE in cell.wrong and again:
        _say(f"{cell.section:18} {cell.kind:22} {cell.fate:8} {cell.wrong}; it is played again")
        cell, again = play(*words), again - 1
    return cell


def _lines(path: Path | None) -> list[str]:
    return path.read_text().splitlines() if path and path.exists() else []


if __name__ == "__main__":
    sys.exit(main())

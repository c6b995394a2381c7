"""Servers that fail in every way, under a triage that is itself ended, at each target.

    python tests/parts/torture.py [--full] [--targets process,systemd] [--table docs/torture.md]

One cell is a bisection of one flag, `--misbehave KIND`: triage is left alone, or gets a signal while
that flag is tried; then the same command goes on. In each cell: the verdict is the expected one,
nothing of the launch is alive two seconds after, the journal is readable, and the resumed search
answers. Exit 1 if a cell fails.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]

from parts import missing, place  # noqa: E402

from triage.core.launch import Container  # noqa: E402

ENGINE = HERE / "torture_engine.py"
FATES = {
    "runs on": 0,
    "Ctrl-C": signal.SIGINT,
    "SIGTERM": signal.SIGTERM,
    "SIGKILL": signal.SIGKILL,
}
# kind -> what the trial with the flag shows
KINDS = {
    "crash-at-init": "fails",
    "crash-at-load": "fails",
    "crash-at-capture": "fails",
    "exit-silently": "fails|unresolved",
    "segfault": "fails|unresolved",
    "get-killed-for-memory": "fails|unresolved",
    "ignore-sigterm": "starts",
    "leave-daemons": "fails",
    "hang-in-a-collective": "fails",
    "freeze": "fails|unresolved",
    "flood": "fails",
    "write-no-newline": "fails",
    "leave-shared-memory": "fails",
    "keep-gpu-memory": "fails",
    "fill-the-disk": "fails",
}
# These stop the search with exit code 4; it goes on once the machine is well again.
HOST_KINDS = {"keep-gpu-memory", "fill-the-disk"}
# What needs a cgroup of version 1, which only a process of this machine can enter.
ONLY_PROCESS = {"get-killed-for-memory", "freeze", "keep-gpu-memory", "fill-the-disk"}
GONE_S = 2.0
HOST = 4  # the exit code for: this machine cannot do it
# A scheduler ends a job in its own time: KillWait, then its own clean-up.
SLURM_GONE_S = 8.0


@dataclass
class Cell:
    """One cell and what was wrong with it; `seconds` is the whole cell."""

    kind: str
    fate: str
    target: str
    wrong: str
    seconds: float = 0.0


def recipe(folder: Path, kind: str, target: str) -> Path:
    """A baseline that starts, and the one flag."""
    where = place(target)
    words = list(where.run) if isinstance(where, Container) else []
    nodes = 2 if target == "slurm" else 1
    path = folder / "recipe.yaml"
    path.write_text(
        f"""schema: triage.recipe/1
name: torture
launch:
  target: {target}
  container: {json.dumps(words)}
  nodes: {nodes}
  command: [{json.dumps(sys.executable)}, {json.dumps(str(ENGINE))}]
  patience: {{silent: 5s, total: 60s}}
baseline: {{flags: {{model-path: m}}}}
wanted:
  - {{flag: misbehave, value: {kind}}}
goal: all
"""
    )
    return path


def bisect(folder: Path, kind: str, target: str) -> subprocess.Popen[str]:
    """One triage in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "triage", "bisect", str(recipe(folder, kind, target)),
         "--session", str(folder / "s"), "--rungs", "full", "--no-doctor", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"} | surroundings(folder, kind),
        start_new_session=True,
    )  # fmt: skip


def surroundings(folder: Path, kind: str) -> dict[str, str]:
    """What the machine is like for this kind: variables for triage and its server."""
    session = folder / "s"
    if kind == "fill-the-disk" and not session.exists():
        session.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "triage", session], check=True)
    if kind != "keep-gpu-memory":
        return {}
    library = folder / "nvml" / "libnvidia-ml.so.1"
    if not library.exists():
        library.parent.mkdir()
        (folder / "held").mkdir()
        (folder / "gpus").write_text("")
        words: list[str | Path] = [
            "gcc",
            "-shared",
            "-fPIC",
            "-O1",
            "-Wl,-soname,libnvidia-ml.so.1",
            "-o",
            library,
        ]
        subprocess.run([*map(str, words), str(HERE / "nvml" / "fake_nvml.c")], check=True)
    return {
        "LD_LIBRARY_PATH": str(library.parent),
        "FAKE_NVML": str(folder / "gpus"),
        "FAKE_NVML_HELD": str(folder / "held"),
    }


def mend(folder: Path, kind: str) -> None:
    """Make the machine well again."""
    if kind == "fill-the-disk":
        size = ["-o", "remount,size=400m"]
        subprocess.run(["mount", *size, folder / "s"], check=True)
    for file in (folder / "held").glob("*.leak"):
        file.unlink()


def play(kind: str, fate: str, target: str) -> Cell:
    """One cell."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="triage-torture-") as name:
        try:
            wrong = _play(Path(name), kind, fate, target)
        except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
            wrong = f"{type(error).__name__}: {error}"[:120]
        finally:
            thaw()
            if os.path.ismount(Path(name) / "s"):
                subprocess.run(["umount", "-l", Path(name) / "s"], check=False)
    return Cell(kind, fate, target, wrong, time.monotonic() - began)


def _play(folder: Path, kind: str, fate: str, target: str) -> str:
    """What is wrong, or "" """
    session = folder / "s"
    number = FATES[fate]
    triage = bisect(folder, kind, target)
    if number:
        trial = session / "trials" / "002" / "server.log"
        _until(lambda: triage.poll() is not None or _size(trial) > 0, 60)
        time.sleep(0.3)
        if triage.poll() is None:
            os.kill(triage.pid, number)
    errors = _ended(triage, kind)
    if wrong := _left(target) or _unreadable(session) or _ours(errors):
        return wrong
    if kind in HOST_KINDS and not number and triage.returncode != HOST:
        return f"exit {triage.returncode} instead of {HOST}: {errors.strip()[-150:]}"
    if number or kind in HOST_KINDS:
        mend(folder, kind)
        errors = _ended(bisect(folder, kind, target), kind)
        if wrong := _left(target) or _unreadable(session) or _ours(errors):
            return f"resumed: {wrong}"
    elif kind == "freeze" and not (_told_stuck(session) and triage.returncode == HOST):
        return f"a process that could not be ended is not told (exit {triage.returncode})"
    entries = [json.loads(line) for line in (session / "journal.jsonl").read_text().splitlines()]
    shown = {entry["seen"] for entry in entries if entry.get("items")}
    if not shown & set(KINDS[kind].split("|")):
        return f"verdict {sorted(shown)} instead of {KINDS[kind]}; {errors.strip()[-150:]}"
    return ""


def _ended(triage: subprocess.Popen[str], kind: str) -> str:
    """Wait for its end; what it said on stderr. A frozen server is let go once SIGKILL waits for it."""
    if kind == "freeze":
        _until(lambda: triage.poll() is not None or _waits_for_kill(), 60)
        _until(lambda: triage.poll() is not None, 20)  # it gives up, and tells
        thaw()
    return triage.communicate(timeout=150)[1]


def _left(target: str) -> str:
    """What of the launch is still there, too late; it is ended then."""
    if not _until(lambda: not alive(), SLURM_GONE_S if target == "slurm" else GONE_S):
        left = alive()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return f"{len(left)} survivors"
    shared = Path("/dev/shm")
    _until(lambda: not list(shared.glob("triage-torture-*")), GONE_S)
    files = list(shared.glob("triage-torture-*"))
    for file in files:
        file.unlink()
    return "a shared-memory segment is left" if files else ""


def _ours(errors: str) -> str:
    """A traceback of triage itself."""
    last = errors.strip().splitlines()[-1:]
    return f"a traceback of ours: {last[0]}" if "Traceback" in errors else ""


def _told_stuck(session: Path) -> bool:
    """Whether a launch's account names a process that survived SIGKILL for a while."""
    told = [json.loads(path.read_text()) for path in session.glob("trials/*/exit.json")]
    return any(one.get("stuck") for one in told)


def _unreadable(session: Path) -> str:
    try:
        for line in (session / "journal.jsonl").read_text().splitlines():
            json.loads(line)
    except (OSError, ValueError) as error:
        return f"the journal is not readable: {error}"
    return ""


def _waits_for_kill() -> bool:
    """Whether SIGKILL is pending for a frozen engine."""
    for folder in Path("/sys/fs/cgroup/freezer").glob("triage-torture-*"):
        with contextlib.suppress(OSError):
            pids = map(int, (folder / "cgroup.procs").read_text().split())
            if any(_state(pid) == "D" and _pending_kill(pid) for pid in pids):
                return True
    return False


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


def thaw() -> None:
    """Let every frozen engine go, and remove the groups that engines made."""
    for root in ("freezer", "memory"):
        for folder in Path(f"/sys/fs/cgroup/{root}").glob("triage-torture-*"):
            with contextlib.suppress(OSError):
                (folder / "freezer.state").write_text("THAWED")
            for _ in range(20):
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                time.sleep(0.05)


def alive() -> list[int]:
    """Engines and their daemons that live; frozen ones are not counted, they are told."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError, IndexError):
            words = (folder / "cmdline").read_bytes()
            ours = str(ENGINE).encode() in words or b"torture-daemon" in words
            others = b"podman" in words or b"triage\0bisect" in words
            if ours and not others and _state(int(folder.name)) not in ("Z", "X", ""):
                found.append(int(folder.name))
    return found


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


def cells(*, full: bool, targets: list[str]) -> list[tuple[str, str, str]]:
    """What is played: all, or each kind once and each fate at each target."""
    every = [
        (kind, fate, target)
        for target in targets
        for kind in KINDS
        for fate in FATES
        if target == "process" or kind not in ONLY_PROCESS
    ]
    if full:
        return every
    few = {"leave-daemons", "hang-in-a-collective"}
    return [
        (kind, fate, target)
        for kind, fate, target in every
        if (target == "process" and fate == "runs on")
        or (kind == "leave-daemons" and fate == "SIGKILL")
        or (kind in few and target == "process")
    ]


def table(done: list[Cell], *, full: bool) -> str:
    """The page: one table a target, a mark and the seconds in each cell."""
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    lines = [
        "# Torture",
        "",
        f"Written by `make torture-full` on {time.strftime('%Y-%m-%d')}, commit {commit}."
        if full
        else "A part, written by `make torture`.",
        "",
        "Each cell is a bisection of one flag that makes the server fail in this way, while triage",
        "itself is left alone or ended, and then goes on. `ok`: the verdict is the expected one, no",
        "process and no shared memory of the launch is left two seconds later (Slurm: eight; a process in",
        "uninterruptible sleep is reported instead), the journal is readable, and the resumed search",
        "answers. The number is the whole cell's seconds.",
    ]
    for target in dict.fromkeys(cell.target for cell in done):
        lines += ["", f"## {target}", "", "| server | " + " | ".join(FATES) + " |"]
        lines.append("|" + " --- |" * (len(FATES) + 1))
        for kind in KINDS:
            row = {c.fate: c for c in done if c.target == target and c.kind == kind}
            if row:
                marks = [_mark(row.get(fate)) for fate in FATES]
                lines.append(f"| {kind} | " + " | ".join(marks) + " |")
    good = sum(not cell.wrong for cell in done)
    lines += ["", f"{good} of {len(done)} cells are ok.", ""]
    return "\n".join(lines)


def _mark(cell: Cell | None) -> str:
    if cell is None:
        return ""
    return f"**{cell.wrong.replace('|', '/')}**" if cell.wrong else f"ok {cell.seconds:.0f}"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Play the cells that this machine can, and print each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--targets", default="process,systemd,container,slurm")
    parser.add_argument("--only", default="", help="one kind")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--json", action="store_true", help="print each cell as JSON")
    parser.add_argument("--cells", type=Path, help="such lines of another run, for the table too")
    args = parser.parse_args()
    targets = []
    for target in args.targets.split(","):
        if why := missing(target):
            _say(f"{target}: not here: {why}")
            if target in os.environ.get("TRIAGE_PARTS", "").split():
                return 1
        else:
            targets.append(target)
    done = []
    for kind, fate, target in cells(full=args.full, targets=targets):
        if args.only in ("", kind):
            cell = play(kind, fate, target)
            line = f"{target:10} {kind:22} {fate:8} {cell.wrong or 'ok'} ({cell.seconds:.1f} s)"
            _say(json.dumps(vars(cell)) if args.json else line)
            done.append(cell)
    if args.table:
        lines = args.cells.read_text().splitlines() if args.cells else []
        done += [Cell(**json.loads(line)) for line in lines if line.startswith("{")]
        args.table.write_text(table(done, full=args.full))
    return int(any(cell.wrong for cell in done))


if __name__ == "__main__":
    sys.exit(main())

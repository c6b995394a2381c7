"""What is played in the torture table: rows, columns, sections; and the page that it gives.

In:  played cells. Out: which cells there are, docs/torture.md.
Not: playing one (torture.py).
"""

from __future__ import annotations

import functools
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FATES = {
    "runs on": 0,
    "Ctrl-C": signal.SIGINT,
    "SIGTERM": signal.SIGTERM,
    "SIGKILL": signal.SIGKILL,
}
# Sections: how it is launched -> the recipe's target, and a line above its table.
SECTIONS = {
    "process": ("process", "In a control group of its own, ended by `cgroup.kill`."),
    "process-by-process": (
        "process",
        "Where no control group can be made (its file system is read-only in this section): parents,"
        " sessions and pidfds.",
    ),
    "systemd": ("systemd", "systemd as PID 1, in a container."),
    "container": ("container", "podman with runc."),
    "slurm": ("slurm", "A job on two nodes, `proctrack/linuxproc`."),
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
    "take-over-a-unit": "fails",
}
WHAT = {
    "crash-at-init": "an exception before any weight is read",
    "crash-at-load": "an exception while weights are read",
    "crash-at-capture": "an exception while graphs are captured",
    "exit-silently": "exit code 1 without a word",
    "segfault": "a read of address 0",
    "get-killed-for-memory": "SIGKILL by the kernel at the limit of a memory control group",
    "ignore-sigterm": "it comes up, and does not go when asked",
    "leave-daemons": "two processes that left session, group and parent and ignore SIGTERM, then an exception",
    "hang-in-a-collective": "silence in a function named all_reduce",
    "freeze": "state D by the freezer: SIGKILL stays pending, as for a process stuck in a driver",
    "flood": "400 MB of log as fast as it can, then an exception",
    "write-no-newline": "one line of 50 MB, then an exception",
    "leave-shared-memory": "a segment in /dev/shm that nobody removes, then an exception",
    "keep-gpu-memory": "5 GB of a GPU (of the stand-in for NVML) that no process holds, then an exception",
    "fill-the-disk": "a log larger than the session's file system",
    "take-over-a-unit": "an exception at load, while `--take-over` holds a working unit: it runs again at the end",
}
# These stop the search with exit code 4; it goes on once the machine is well again.
HOST_KINDS = {"keep-gpu-memory", "fill-the-disk"}
# (section, kind) -> why it is not played.
_NO_UNIT = "`--take-over` is about a unit of the service manager; it is played where that is PID 1."
NOT_PLAYED = {
    (
        "slurm",
        "keep-gpu-memory",
    ): "The GPUs are those of the nodes; triage reads only those of its own"
    " machine, and the scheduler's epilog is what cleans a node's.",
    ("process", "take-over-a-unit"): _NO_UNIT,
    ("process-by-process", "take-over-a-unit"): _NO_UNIT,
    ("container", "take-over-a-unit"): _NO_UNIT,
    ("slurm", "take-over-a-unit"): _NO_UNIT,
}


@dataclass
class Cell:
    """One cell and what was wrong with it; `seconds` is the whole cell."""

    kind: str
    fate: str
    section: str
    wrong: str
    seconds: float = 0.0
    commit: str = ""


def cells(*, full: bool, sections: list[str]) -> list[tuple[str, str, str]]:
    """What is played: all, or each kind once and each fate at each target."""
    every = [
        (kind, fate, section)
        for section in sections
        for kind in KINDS
        for fate in FATES
        if (section, kind) not in NOT_PLAYED
    ]
    if full:
        return every
    return [cell for cell in every if _in_short(*cell)]


def _in_short(kind: str, fate: str, section: str) -> bool:
    if kind == "leave-daemons" and fate == "SIGKILL":
        return True
    if kind == "take-over-a-unit":
        return fate == "SIGKILL"
    if section != "process":
        return False
    return fate == "runs on" or kind in {"leave-daemons", "hang-in-a-collective"}


@functools.cache
def commit() -> str:
    """The tree that is played, with `+` if it has changes other than the page itself."""
    words = ["git", "-C", str(ROOT)]
    head = _said([*words, "rev-parse", "--short", "HEAD"])
    return head + (
        "+" if _said([*words, "status", "--porcelain", "-uno", "--", ":!docs/torture.md"]) else ""
    )


def _said(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def table(done: list[Cell], *, full: bool) -> str:
    """The page: one table a section, a mark and the seconds in each cell."""
    (tree, _), *others = Counter(cell.commit for cell in done).most_common()
    lines = [
        "# Torture",
        "",
        f"Written by `make torture-full` on {time.strftime('%Y-%m-%d')}, commit {tree}."
        if full
        else "A part, written by `make torture`.",
        *(line for other, _ in others for line in ("", _played_on(other, done))),
        "",
        "Each cell is a bisection of one flag that makes the server fail in this way, while triage",
        "itself is left alone or ended, and then goes on. `ok`: the verdict is the expected one, no",
        "process and no shared memory of the launch is left two seconds later (a process in",
        "uninterruptible sleep is reported instead), the journal is readable, and the resumed search",
        "answers. The number is the whole cell's seconds; cells are played several at a time.",
        "",
        "| server | what it does |",
        "| --- | --- |",
        *(f"| {kind} | {what} |" for kind, what in WHAT.items()),
    ]
    for section in (one for one in SECTIONS if any(cell.section == one for cell in done)):
        lines += ["", f"## {section}", "", SECTIONS[section][1], ""]
        lines.append("| server | " + " | ".join(FATES) + " |")
        lines.append("|" + " --- |" * (len(FATES) + 1))
        for kind in KINDS:
            row = {c.fate: c for c in done if c.section == section and c.kind == kind}
            if (section, kind) not in NOT_PLAYED:
                marks = [_mark(row.get(fate)) for fate in FATES]
                lines.append(f"| {kind} | " + " | ".join(marks) + " |")
        reasons = {k: why for (s, k), why in NOT_PLAYED.items() if s == section}
        lines += [line for kind, why in reasons.items() for line in ("", f"Not {kind}: {why}")]
    good = sum(not cell.wrong for cell in done)
    missing = len(cells(full=full, sections=list(SECTIONS))) - len(done)
    unplayed = f" {missing} were not played this time; their places are empty." if missing else ""
    lines += ["", f"{good} of {len(done)} cells are ok.{unplayed}", ""]
    return "\n".join(lines)


def _played_on(tree: str, done: list[Cell]) -> str:
    """The cells of another tree than most; a section or a row by its name, if all of it is."""
    named: list[str] = []
    for section in dict.fromkeys(cell.section for cell in done):
        rows = {
            kind: {cell.fate: cell.commit == tree for cell in done
                   if (cell.section, cell.kind) == (section, kind)}
            for kind in dict.fromkeys(cell.kind for cell in done if cell.section == section)
        }  # fmt: skip
        if all(all(row.values()) for row in rows.values()):
            named.append(section)
            continue
        for kind, row in rows.items():
            if all(row.values()):
                named.append(f"{section} / {kind}")
            else:
                named += [f"{section} / {kind} / {fate}" for fate, here in row.items() if here]
    return f"On commit {tree}: {'; '.join(named)}."


def _mark(cell: Cell | None) -> str:
    if cell is None:
        return ""
    return f"**{cell.wrong.replace('|', '/')}**" if cell.wrong else f"ok {cell.seconds:.0f}"

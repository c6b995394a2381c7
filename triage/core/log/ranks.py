"""The names of ranks: one name for one process, however its lines are labelled.

In:  labels of lines (`TP3`, `Worker_TP3`, `gpu3`, `rank3`), and all labels of a launch.
Out: topology tags as SGLang prints them, or "main".
Not: which rank failed (cascade.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from triage.core.regex import regex

_PART = regex(r"([A-Z][A-Z_]*?)(\d+)")
_DIGITS = regex(r"(\d+)")
_WORKER = regex(r"Worker((?:_[A-Z]+\d+)+)", needs=("Worker_",))
_ENGINE = regex(r"EngineCore_(DP\d+)", needs=("EngineCore_DP",))
_OTHERS = regex(
    r"(?:APIServer|ApiServer|EngineCore|Worker|RayWorkerWrapper|VllmWorker)\b",
    needs=("Server", "EngineCore", "Worker"),
)
_NUMBERED = regex(r"(gpu=|gpu_id=|gpu|rank)(\d+)", needs=("gpu", "rank"))
# Source: SGLang's setproctitle, with blanks as `_`: `sglang::scheduler_DP0_TP3`.
_TITLE = regex(r"sglang::scheduler_?(?P<tag>[A-Z0-9_]*)", needs=("sglang::scheduler",))
# Who died, in the words of the launcher that noticed it.
_DEAD = regex(
    r"Rank (?P<a>\d+) scheduler|Subprocess scheduler_(?P<b>\d+) |local_rank: (?P<c>\d+)"
    r"|that process rank (?P<d>\d+) |Worker proc VllmWorker-(?P<e>\d+) ",
    needs=(" scheduler", "local_rank: ", "that process rank ", "Worker proc VllmWorker-"),
)


@lru_cache(maxsize=1024)
def topology(label: str) -> str:
    """The tag of a place in the parallel layout, or "" for a process without one."""
    if _is_topology(label):
        return label
    worker = _WORKER.match(label)
    return worker[1].strip("_").replace("_", " ") if worker else ""


def titled(title: str) -> str:
    """The tag in the title that a process gave itself, "" for one without."""
    found = _TITLE.search(title)
    return found["tag"].replace("_", " ").strip() if found else ""


def _is_topology(label: str) -> bool:
    """Whether the label is tags with numbers, as `DP0 TP3`."""
    for part in label.split(" "):
        name = part.rstrip("0123456789")
        plain = name.isascii() and name.isupper() and name.replace("_", "A").isalpha()
        if not plain or name[0] == "_" or name == part:
            return False
    return True


def members(labels: Iterable[str]) -> tuple[str, ...]:
    """The tags among these labels, each once, in the order of the layout."""
    return tuple(sorted({tag for label in labels if (tag := topology(label))}, key=by_number))


@lru_cache(maxsize=1024)
def by_number(tag: str) -> tuple[tuple[int, str], ...]:
    """A key that puts TP2 before TP12."""
    parts = _DIGITS.split(tag)
    return tuple((int(part) if part.isdecimal() else -1, part) for part in parts)


def resolved(label: str, labels: set[str]) -> str:
    """The label as the tag of its process, where the labels of the launch tell which it is."""
    if tag := topology(label):
        return tag
    if engine := _ENGINE.match(label):
        replicas = {found[1] for other in labels if (found := _ENGINE.match(other))}
        return engine[1] if len(replicas) > 1 else "main"
    if _OTHERS.match(label):
        return "main"
    found = _NUMBERED.fullmatch(label)
    if found is None:
        return label
    tag = numbered(int(found[2]), labels)
    return tag or ("main" if found[1] == "gpu" else label)


def numbered(number: int, labels: Iterable[str]) -> str:
    """The tag of the process with this number of a device or global rank; "" if unclear."""
    tags = members(labels)
    owners = [tag for tag in tags if _part(tag, "TP") == number and not _part(tag, "PP")]
    if len(owners) == 1:
        return owners[0]
    world = sorted(tags, key=lambda tag: (_part(tag, "PP") or 0, _part(tag, "TP") or 0))
    places = {(_part(tag, "PP"), _part(tag, "TP")) for tag in tags}
    return world[number] if number < len(world) == len(places) else ""


def dead(text: str, labels: set[str]) -> str:
    """The tag of the rank of which the line says that it died; "" if it does not say."""
    found = _DEAD.search(text)
    if found is None:
        return ""
    number = int(found[found.lastgroup or 0])
    tag = numbered(number, labels)
    return tag or (f"TP{number}" if number else "")


def _part(tag: str, kind: str) -> int | None:
    return next((int(n) for name, n in _PART.findall(tag) if name == kind), None)

"""Which ranks are alive, as the titles of their processes tell.

In:  PIDs of a launch. Out: tags of ranks (`TP3`, `DP0 TP1`).
Not: what a rank said (triage.core.log).

Source: SGLang names its scheduler processes `sglang::scheduler` and the tag, with `_` for
spaces; until they have read their arguments they are `python -c from multiprocessing...`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

_SCHEDULER = "sglang::scheduler"


def living(ranks: Collection[str], pids: Iterable[int]) -> frozenset[str]:
    """Those of the ranks that are alive; all of them where no process says which it is."""
    found = {tag for pid in pids if (tag := _tag(pid)) is not None}
    return frozenset(ranks) & found if found else frozenset(ranks)


def _tag(pid: int) -> str | None:
    """The rank of a scheduler process, "" of the only one; None of any other process."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return None
    title = words.partition(b"\0")[0].decode(errors="replace").strip()
    if not title.startswith(_SCHEDULER):
        return None
    return title.removeprefix(_SCHEDULER).strip("_").replace("_", " ")

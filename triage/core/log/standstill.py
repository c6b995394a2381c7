"""Where the ranks of a silent launch stand, from the stacks of its processes.

In:  the text of stacks.txt (triage.launch writes it). Out: sentences.
Not: taking the stacks, or the cause.

Source: py-spy 0.4 prints threads as `Thread N (state): "name"` and frames, innermost first, as
`function (file:line)`; pystack 1.7 prints `Traceback for thread N` and frames, innermost last, as
`(Python) File "file", line N, in function`; SGLang titles its ranks `sglang::scheduler_DP0_TP3`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from triage.core.records import dataclass

_PROCESS = re.compile(
    r"^== process (?P<pid>\d+) \((?P<comm>.*)\), parent \d+, state (?P<state>\S+),"
    r" waits in (?P<waits>\S+)$"
)
_THREAD = re.compile(r'^Thread .*: "(?P<name>[^"]*)"')
_FRAME = re.compile(r"^\s+(?P<function>\S.*?) \((?P<file>[^()]*?):(?P<line>\d+)\)$")
_OTHER_THREAD = re.compile(r"^Traceback for thread (?P<number>\d+) ")
_OTHER_FRAME = re.compile(
    r'^\s+\(Python\) File "(?P<file>[^"]*)", line (?P<line>\d+), in (?P<function>\S.*)$'
)
_RANK = re.compile(r"sglang::scheduler_?(?P<rank>[A-Z0-9_]*)")
# Frames that only say that somebody waits, not for what.
_WAITING = ("threading.py", "selectors.py", "queue.py", "socket.py", "subprocess.py", "ssl.py")
_WAITING_FOLDERS = ("multiprocessing/", "concurrent/futures/", "asyncio/")
_COLLECTIVE = re.compile(
    r"all_?reduce|all_?gather|reduce_scatter|broadcast|barrier|all_to_all|rendezvous"
    r"|init_process_group|new_group|create_allreduce_fusion_workspace|ncclComm|recv_object|scatter"
)
_DEEP = 12  # innermost frames in which a collective is looked for
_GROUPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """Where the main thread of one process stands; `function` is "" if it has no stack."""

    who: str  # TP3, or "process 41"
    state: str
    waits: str  # the kernel function
    function: str = ""
    file: str = ""
    line: int = 0
    collective: str = ""  # the frame that other ranks have to enter too
    ranked: bool = False

    @property
    def where(self) -> str:
        """The place as people write it."""
        return f"{self.function} ({self.file}:{self.line})"


def standing(text: str) -> tuple[Stand, ...]:
    """One value a process of the text, in its order; what is no dump is passed over."""
    return tuple(_stands(text))


def sentences(text: str) -> tuple[str, ...]:
    """What the stacks say, the odd one out first; empty where nothing is known."""
    every = standing(text)
    stands = [one for one in every if one.ranked] or [one for one in every if one.function]
    groups: dict[tuple[str, str], list[Stand]] = {}
    for one in stands:
        if one.function:
            groups.setdefault((one.function, one.file), []).append(one)
    said = [
        f"{one.who} has no stack: state {one.state}, waiting in {one.waits}"
        for one in stands
        if not one.function
    ]
    order = sorted(groups.values(), key=len)
    if len(order) == 1 and len(order[0]) > 1:
        first = order[0][0]
        together = ", a call that each rank has to make" if first.collective else ""
        said.append(f"all {len(order[0])} stand in {first.where}{together}")
        return tuple(said)
    for group in order[:_GROUPS]:
        who = ", ".join(one.who for one in group[:4]) + (" and others" if len(group) > 4 else "")  # noqa: PLR2004
        verb = "stands" if len(group) == 1 else "stand"
        said.append(f"{who} {verb} in {group[0].where}")
    if len(order) == 2 and order[1][0].collective and not order[0][0].collective:  # noqa: PLR2004
        odd = ", ".join(one.who for one in order[0][:4])
        said.append(f"the others wait for {odd} in {order[1][0].collective}")
    return tuple(said)


def _stands(text: str) -> Iterator[Stand]:
    head: re.Match[str] | None = None
    title, lines = "", list[str]()
    for line in [*text.splitlines(), "== end"]:
        if line.startswith("== "):
            if head is not None:
                yield _stand(head, title, lines)
            head, title, lines = _PROCESS.match(line), "", []
        elif not title and head is not None:
            title = line
        else:
            lines.append(line)


def _stand(head: re.Match[str], title: str, lines: list[str]) -> Stand:
    rank = _RANK.search(title) or _RANK.search(head["comm"])
    who = (rank["rank"].replace("_", " ").strip() if rank else "") or f"process {head['pid']}"
    frames = _main_thread(lines, head["pid"])
    inner = next((f for f in frames if not _only_waits(f["file"])), frames[0] if frames else None)
    shared = next((f for f in frames[:_DEEP] if _COLLECTIVE.search(f["function"])), None)
    if inner is None:
        return Stand(who=who, state=head["state"], waits=head["waits"], ranked=rank is not None)
    return Stand(
        who=who,
        state=head["state"],
        waits=head["waits"],
        function=inner["function"],
        file=inner["file"],
        line=int(inner["line"]),
        collective=f"{shared['function']} ({shared['file']}:{shared['line']})" if shared else "",
        ranked=rank is not None,
    )


def _main_thread(lines: list[str], pid: str) -> list[re.Match[str]]:
    """The frames of the main thread, of the first thread if none is called so."""
    threads: list[tuple[str, list[re.Match[str]]]] = []
    for line in lines:
        if thread := _THREAD.match(line):
            threads.append((thread["name"], []))
        elif thread := _OTHER_THREAD.match(line):
            threads.append(("MainThread" if thread["number"] == pid else "", []))
        elif threads and (frame := _FRAME.match(line)):
            threads[-1][1].append(frame)
        elif threads and (frame := _OTHER_FRAME.match(line)):
            threads[-1][1].insert(0, frame)
    named = [frames for name, frames in threads if name == "MainThread" and frames]
    return (named or [frames for _, frames in threads if frames] or [[]])[0]


def _only_waits(file: str) -> bool:
    return file in _WAITING or file.startswith(_WAITING_FOLDERS)

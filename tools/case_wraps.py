"""The shapes that container, cluster and shell give to the lines of a process.

In:  Printed lines of a Log. Out: the physical lines of the file, and which of them is the root.
Not: what the lines say.

Source: docker compose, `docker logs -t`, Docker's JSON files, Kubernetes CRI, journald,
Ray, srun, mpirun.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from case_spec import Spec
from case_text import MAIN, Log, Printed

_PIECE = 16384  # bytes after which Docker and CRI cut a line in two
_YELLOW, _OFF = "\x1b[33m", "\x1b[0m"


def physical(log: Log, lines: Sequence[Printed]) -> tuple[bytes, int, list[str]]:
    """The file, the number of the root's line from 1 (0: none), and its lines as text."""
    wrap = WRAPS[log.spec.wrap]
    out: list[str] = []
    root, now = 0, lines[0].time
    for printed in lines:
        now = max(now, printed.time)  # a container's clock does not go back where ranks take turns
        line = replace(printed, time=now)
        text = _coloured(line) if log.spec.ansi else line.text
        pieces = list(wrap(log, line, text))
        if line.root and not root:
            root = len(out) + 1
        out += pieces
    return "".join(f"{text}\n" for text in out).encode(), root, out


def _coloured(line: Printed) -> str:
    if line.failure or "Warning" in line.text or line.text.startswith("[Gloo]"):
        return f"{_YELLOW}{line.text}{_OFF}" if line.text else ""
    if line.text.startswith("(") and ") " in line.text:
        head, _, rest = line.text.partition(") ")
        return f"\x1b[1;36m{head})\x1b[0;0m {rest}"
    return line.text


def _none(log: Log, line: Printed, text: str) -> Iterator[str]:
    yield text


def _compose(log: Log, line: Printed, text: str) -> Iterator[str]:
    name = "\x1b[36msglang-1  | \x1b[0m" if log.spec.ansi else "sglang-1  | "
    yield name + text


def _utc(line: Printed) -> str:
    return f"{line.time:%Y-%m-%dT%H:%M:%S}.{line.time.microsecond:06d}417Z"


def _docker_t(log: Log, line: Printed, text: str) -> Iterator[str]:
    yield f"{_utc(line)} {text}"


def _docker_json(log: Log, line: Printed, text: str) -> Iterator[str]:
    pieces = _cut(text)
    for number, piece in enumerate(pieces):
        end = "\n" if number == len(pieces) - 1 else ""
        record = json.dumps({"log": piece + end, "stream": "stderr", "time": _utc(line)},
                            ensure_ascii=False, separators=(",", ":"))  # fmt: skip
        for mark, escape in (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e")):
            record = record.replace(mark, escape)
        yield record


def _cri(log: Log, line: Printed, text: str) -> Iterator[str]:
    pieces = _cut(text)
    for number, piece in enumerate(pieces):
        tag = "F" if number == len(pieces) - 1 else "P"
        yield f"{_utc(line)} stderr {tag} {piece}"


def _cut(text: str) -> list[str]:
    return [text[at : at + _PIECE] for at in range(0, max(1, len(text)), _PIECE)]


def _journal(log: Log, line: Printed, text: str) -> Iterator[str]:
    yield f"{line.time:%b %d %H:%M:%S} {log.node} sglang[{log.pid}]: {text}"


def _journal_iso(log: Log, line: Printed, text: str) -> Iterator[str]:
    yield f"{line.time:%Y-%m-%dT%H:%M:%S}+0000 {log.node} sglang[{log.pid}]: {text}"


def _ray(log: Log, line: Printed, text: str) -> Iterator[str]:
    node = _node(log.spec, line)
    where = f", ip=10.0.0.{7 + node}" if log.spec.nodes > 1 else ""
    yield f"(SGLangEngine pid={log.pid + node}{where}) {text}"


def _srun(log: Log, line: Printed, text: str) -> Iterator[str]:
    yield f"{_node(log.spec, line)}: {text}"


def _mpirun(log: Log, line: Printed, text: str) -> Iterator[str]:
    yield f"[1,{_node(log.spec, line)}]<stderr>:{text}"


def _k8s(log: Log, line: Printed, text: str) -> Iterator[str]:
    yield f"[pod/sglang-0/server] {text}"


def _node(spec: Spec, line: Printed) -> int:
    if line.process == MAIN:
        return 0
    return line.process * spec.nodes // spec.world


WRAPS: dict[str, Callable[[Log, Printed, str], Iterator[str]]] = {
    "none": _none,
    "compose": _compose,
    "docker-t": _docker_t,
    "docker-json": _docker_json,
    "cri": _cri,
    "journal": _journal,
    "journal-iso": _journal_iso,
    "ray": _ray,
    "srun": _srun,
    "mpirun": _mpirun,
    "pod": _k8s,
}

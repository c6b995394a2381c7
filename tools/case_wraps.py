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
    if log.spec.wrap in RECORDS:
        return _records(log, lines, RECORDS[log.spec.wrap])
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


def _records(
    log: Log, lines: Sequence[Printed], wrap: Callable[[Log, Printed, str], Iterator[str]]
) -> tuple[bytes, int, list[str]]:
    """As `physical`, where a collector joins a record with all lines up to the next one's head."""
    out: list[str] = []
    root = 0
    for group in _joined(lines):
        held = list(wrap(log, group[0], "\n".join(line.text for line in group)))
        if not root and any(line.root for line in group):
            root = (
                len(out) + 1 + next(n for n, text in enumerate(held) if group[0].text[:9] in text)
            )
        out += held
    return "".join(f"{text}\n" for text in out).encode(), root, out


def _joined(lines: Sequence[Printed]) -> Iterator[list[Printed]]:
    group: list[Printed] = []
    for line in lines:
        goes_on = group and line.failure and line.process == group[-1].process
        if not goes_on or line.text.startswith("[20"):
            if group:
                yield group
            group = []
        group.append(line)
    yield group


def _fluent(log: Log, line: Printed, text: str) -> Iterator[str]:
    yield json.dumps({"@timestamp": _utc(line), "level": "info", "message": text,
                      "kubernetes": {"pod_name": "sglang-0", "container_name": "server"}})  # fmt: skip


def _loki(log: Log, line: Printed, text: str) -> Iterator[str]:
    yield json.dumps({"labels": {"app": "sglang"}, "line": text, "timestamp": _utc(line)},
                     separators=(",", ":"))  # fmt: skip


def _cloudwatch(log: Log, line: Printed, text: str) -> Iterator[str]:
    at = int(line.time.timestamp() * 1000)
    yield "        {"
    yield f'            "timestamp": {at},'
    yield f'            "message": {json.dumps(text)},'
    yield f'            "ingestionTime": {at + 900}'
    yield "        },"


def _repr(log: Log, line: Printed, text: str) -> Iterator[str]:
    if "\n" not in text:
        yield text
        return
    head, _, rest = text.partition("] ")
    yield f"{head}] {rest!r}" if rest else repr(text)


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
# Those that make one record of all lines of a message.
RECORDS: dict[str, Callable[[Log, Printed, str], Iterator[str]]] = {
    "fluent": _fluent,
    "loki": _loki,
    "cloudwatch": _cloudwatch,
    "repr": _repr,
}

"""Logs of a serving engine, made from a seed: the same name gives the same bytes.

In:  a shape (`bare`, `docker`, `failing`, `hostile-*`) and a size in bytes.
Out: a file, or bytes.
Not: measuring (measure.py).

The lines have the shapes of SGLang 0.5.23 and NCCL 2.27 (eight ranks); every
10,000th is an example of a cause, so that there is something to find.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

RANKS = 8
_PART = 8 << 20  # bytes that are made once; a bigger file repeats them
_EVERY = 10_000  # lines to one line of a failure


def _start() -> Iterator[str]:
    """A healthy start: eight ranks, NCCL's information, progress bars."""
    yield "[2026-07-01 12:00:00] server_args={'model_path': '/models/m', 'tp_size': 8}"
    for rank in range(RANKS):
        yield f"[2026-07-01 12:00:09 TP{rank}] Init torch distributed begin."
    for channel in range(24):
        for rank in range(RANKS):
            to = (rank + 1) % RANKS
            yield (f"node7:{4100 + rank}:{4200 + rank} [{rank}] NCCL INFO Channel {channel:02d}/0 :"
                   f" {rank}[{rank}] -> {to}[{to}] via P2P/CUMEM/read")  # fmt: skip
    for rank in range(RANKS):
        yield f"node7:{4100 + rank}:{4300 + rank} [{rank}] NCCL INFO Connected NVLS tree"
        yield f"[2026-07-01 12:00:21 TP{rank}] Load weight begin. avail mem=139.20 GB"
    bar = (f"\rLoading safetensors checkpoint shards: {n:3d}% Completed | {n}/100 [00:0{n % 10}"
           "<00:59, 3.21it/s]" for n in range(101))  # fmt: skip
    yield "".join(bar)
    for rank in range(RANKS):
        yield f"[2026-07-01 12:01:21 TP{rank}] Load weight end. type=Model, avail mem=61.20 GB"
        yield f"[2026-07-01 12:01:30 TP{rank}] Capture cuda graph begin. This can take minutes."
        yield f"[2026-07-01 12:01:50 TP{rank}] Capture cuda graph end. Time elapsed: 20.1 s."
        yield f"[2026-07-01 12:01:51 TP{rank}] max_total_num_tokens=512000, context_len=131072"
    yield "\x1b[32mINFO\x1b[0m:     Started server process [\x1b[36m4001\x1b[0m]"
    yield "[2026-07-01 12:02:05] The server is fired up and ready to roll!"


def _line(chance: random.Random, second: int) -> str:
    """One line of a healthy server."""
    time = f"2026-07-01 {12 + second // 3600 % 12:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    kind = chance.random()
    if kind < 0.55:
        running = chance.randrange(1, 256)
        return (f"[{time} TP0] Decode batch, #running-req: {running}, #token: {running * 817}, "
                f"token usage: {running / 300:.2f}, cuda graph: True, gen throughput (token/s): "
                f"{running * 41.7:.2f}, #queue-req: {chance.randrange(9)}")  # fmt: skip
    if kind < 0.75:
        return (f"[{time} TP0] Prefill batch, #new-seq: 1, #new-token: {chance.randrange(8192)}, "
                f"#cached-token: {chance.randrange(4096)}, token usage: 0.41, #running-req: "
                f"{chance.randrange(200)}, #queue-req: 0, input throughput (token/s): "
                f"{chance.random() * 9000:.2f}")  # fmt: skip
    if kind < 0.93:
        verb, path = chance.choice(
            (("GET", "/health"), ("POST", "/generate"), ("POST", "/v1/chat/completions"),
             ("GET", "/metrics"))
        )  # fmt: skip
        return (f"[{time}] \x1b[32mINFO\x1b[0m:     10.0.3.{chance.randrange(250)}:"
                f'{chance.randrange(30000, 60000)} - "\x1b[1m{verb} {path} HTTP/1.1\x1b[0m" '
                "\x1b[32m200 OK\x1b[0m")  # fmt: skip
    if kind < 0.99:
        rank = chance.randrange(RANKS)
        buffer = f"0x7f{chance.randrange(1 << 40):010x}"
        return (f"node7:{4100 + rank}:{4200 + rank} [{rank}] NCCL INFO AllReduce: opCount "
                f"{chance.randrange(1 << 20):x} sendbuff {buffer} count {chance.randrange(1 << 22)}"
                " datatype 9 op 0 root 0 comm 0x55d0 nranks=8")  # fmt: skip
    return (
        f"\r{chance.randrange(100):3d}%|####  | {chance.randrange(52)}/52 [00:01<00:03, 9.81it/s]"
    )


def lines(examples: Sequence[str], size: int, *, every: int = _EVERY, seed: int = 7) -> list[str]:
    """About `size` bytes of lines: a start, then serving with one example in `every` lines."""
    chance = random.Random(seed)
    found = list(_start())
    made = sum(map(len, found))
    while made < size:
        number = len(found)
        if number % every == every - 1:
            text = f"[2026-07-01 12:30:00 TP{number % RANKS}] {chance.choice(examples)}"
        else:
            text = _line(chance, number // 20)
        found.append(text)
        made += len(text.encode()) + 1
    return found


def _docker(text: str) -> str:
    """The line as Docker's json-file driver keeps it."""
    log = json.dumps(text + "\n", ensure_ascii=False)
    for char, escape in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        log = log.replace(char, escape)
    return f'{{"log":{log},"stream":"stderr","time":"2026-07-01T12:00:00.123456789Z"}}'


def serving(
    examples: Sequence[str], size: int, *, docker: bool = False, every: int = _EVERY
) -> bytes:
    """A healthy server's log of about `size` bytes."""
    found = lines(examples, size, every=every)
    text = "\n".join(map(_docker, found) if docker else found) + "\n"
    raw = text.encode()
    return raw if docker else raw.replace(b"####", b"\xe2\x96\x88\xe2\x96")  # a torn block char


def write(path: Path, examples: Sequence[str], size: int, *, docker: bool = False) -> None:
    """Write such a log; beyond `_PART` bytes the serving part is repeated."""
    part = serving(examples, min(size, _PART), docker=docker)
    tail = part[part.index(b"ready to roll!") :]
    tail = tail[tail.index(b"\n") + 1 :]
    with path.open("wb") as file:
        file.write(part)
        while (left := size - file.tell()) > 0:
            file.write(tail if left > len(tail) else tail[: tail.rfind(b"\n", 0, left) + 1 or left])
            if left < 1000:
                break


def hostile(kind: str, size: int, literals: Sequence[str]) -> bytes:
    """One line of `size` bytes that is hard on somebody: a scanner, a pattern, a parser."""
    fillers = {
        "letters": b"a",
        "spaces": b" ",
        "brackets": b"[",
        "escapes": b"\x1b[",
        "redrawn": b"\r",
        "bars": b"it/s][2026-07-01 12:00:00 TP0] ",
        "json": b'{"log":"',
        "literals": literals[0].encode() + b" ",
        "all": " ".join(literals).encode() + b" ",
        "traceback": b'Traceback (most recent call last): File "a", line 1, in f ',
        "heads": b"[2026-07-01 12:00:00 TP0] ",
        "wrappers": b"sglang-1  | ",
        "binary": bytes(range(1, 10)) + bytes(range(11, 256)),
        "dump": b"server_args={'a': 'b', ",
        "numbers": b"1234567890",
        "dots": b"lib.a/so.",
        "escaped": b'Traceback (most recent call last):\\n  File \\"a.py\\", line 1, in f\\n',
        "quoted": b"'Traceback (most recent call last):\\n" + 90000 * b"\\'NoneType\\': ",
        "escaped-ends": b"Traceback (most recent call last):" + 400000 * b"\\n",
        "record": b'{"ts":"2026-07-01T12:00:00Z","level":"ERROR","msg":"Traceback (most recent call'
        b" last):" + b'\\n  File \\"a.py\\", line 1, in f' * (size // 30),
    }
    if kind == "record":
        return fillers[kind][: size - 2] + b'"}'
    return (fillers[kind] * (size // len(fillers[kind]) + 1))[:size]


HOSTILE = (
    "letters", "spaces", "brackets", "escapes", "redrawn", "bars", "json", "literals", "all",
    "traceback", "heads", "wrappers", "binary", "dump", "numbers", "dots",
    "escaped", "escaped-ends", "record", "quoted",
)  # fmt: skip

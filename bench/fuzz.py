"""Feeds the classifier what no server wrote: `make fuzz`.

In:  minutes; recorded logs to splice. Out: exit code 0, or the input that broke a rule.
Not: part of the tests; those replay what this found.

The rules: never an exception, both finders agree, the answer does not depend on where
the bytes were cut, a bounded time for each byte and bounded memory.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.generate import HOSTILE, hostile
from triage.core.diagnosis import Diagnosis
from triage.core.log.diagnose import diagnose
from triage.core.log.live import Live
from triage.core.redact import redact_text
from triage.finder import fast, plain
from triage.knowledge import load_causes, load_flag_table
from triage.render.documents import diagnosis_document
from triage.render.text import diagnosis_text

ROOT = Path(__file__).parents[1]
SLOW_S = 2.0  # for an input of up to 300 kB, on a busy machine
_FOLLOWED = 0.1  # of the inputs; a Live costs more to make than most inputs to read
MORE_MB = 200  # that the process may grow by
_CAUSES, _TABLE = load_causes(), load_flag_table()
_LOGS = [path.read_bytes() for path in sorted((ROOT / "fixtures/cases").glob("*/server.log"))]
_LITERALS = _CAUSES.table.texts
_BITS = (
    b"\n", b"\r", b"\r\n", b"\x00", b"\xff\xfe", b"\xe2\x96", b"\x1b[31m", b"\x1b]0;", b"\x85",
    b"\xe2\x80\xa8", b"Traceback (most recent call last):\n", b'  File "a", line 1, in f\n',
    b"[2026-07-01 12:00:00 TP3] ", b"sglang-1  | ", b'{"log":"', b'\\n","stream":"stderr"}',
    b"2026-07-01T12:00:00.123456789Z stderr P ", b"2026-07-01T12:00:00.123456789Z stderr F ",
    b"server_args={'model_path': '/m', ", b"server_args=ServerArgs(", b"Capture cuda graph failed: ",
    b"During handling of the above exception, another exception occurred:\n", b"(" * 300,
    b"The server is fired up and ready to roll!\n", b"0: ", b"[1,3]<stdout>:", b"  | ",
)  # fmt: skip


def random_bytes(chance: random.Random) -> bytes:
    """Anything."""
    return chance.randbytes(chance.randrange(4000))


def spliced(chance: random.Random) -> bytes:
    """Pieces of recorded logs, cut anywhere."""
    parts = []
    for _ in range(chance.randrange(1, 8)):
        raw = chance.choice(_LOGS)
        start = chance.randrange(len(raw))
        parts.append(raw[start : start + chance.randrange(30_000)])
    return chance.choice((b"", b"\n", b"\xe2\x96")).join(parts)


def mutated(chance: random.Random) -> bytes:
    """A recorded log with bytes changed, lines moved, things put in."""
    raw = bytearray(chance.choice(_LOGS))
    for _ in range(chance.randrange(1, 30)):
        at = chance.randrange(len(raw) + 1)
        match chance.randrange(4):
            case 0:
                raw[at : at + chance.randrange(200)] = b""
            case 1:
                raw[at:at] = chance.choice(_BITS)
            case 2:
                raw[at : at + 1] = chance.randbytes(1)
            case _:
                start = chance.randrange(len(raw) + 1)
                raw[at:at] = raw[start : start + chance.randrange(2000)]
    return bytes(raw)


def of_bits(chance: random.Random) -> bytes:
    """Words that mean something, in any order."""
    words = [
        chance.choice(_BITS) if chance.random() < 0.5 else chance.choice(_LITERALS).encode()
        for _ in range(chance.randrange(400))
    ]
    return b"".join(words)


def long_lines(chance: random.Random) -> bytes:
    """Lines far longer than a window, some with 200,000 places of interest."""
    parts = []
    for _ in range(chance.randrange(1, 4)):
        kind = chance.choice(HOSTILE)
        parts.append(hostile(kind, chance.randrange(1, 100_000), _LITERALS))
        parts.append(chance.choice(_LITERALS).encode())
    if chance.random() < 0.02:
        parts.append((chance.choice(_LITERALS).encode() + b" ") * 200_000)
    return chance.choice((b"", b"\n")).join(parts)


def folded(chance: random.Random) -> bytes:
    """Pieces of recorded logs, each as one line: a JSON record, a quoted text, or cut off."""
    lines = []
    for _ in range(chance.randrange(1, 12)):
        log = chance.choice(_LOGS)
        at = chance.randrange(len(log) + 1)
        text = log[at : at + chance.randrange(6000)].decode("utf-8", "replace")
        match chance.randrange(5):
            case 0:
                line = json.dumps({"ts": "2026-07-01T12:00:00Z", "level": "ERROR", "message": text})
            case 1:
                line = json.dumps({"log": json.dumps({"msg": text, "ts": 1}), "stream": "stderr"})
            case 2:
                line = f"[2026-07-01 12:00:00 TP3] child said {text.encode()!r}"
            case 3:
                line = f'            "message": {json.dumps(text)},'
            case _:
                line = text.replace("\n", chance.choice(("\\n", "\\\\n", "\\r\\n")))
        raw = line.encode("utf-8", "replace")
        lines.append(raw[: chance.randrange(len(raw) + 1)] if chance.random() < 0.3 else raw)
    return b"\n".join(lines)


MAKERS: tuple[Callable[[random.Random], bytes], ...] = (
    random_bytes, spliced, mutated, of_bits, long_lines, folded,
)  # fmt: skip


def cut(raw: bytes, chance: random.Random) -> list[bytes]:
    """The bytes in chunks of any size."""
    if not raw:
        return []
    chunks, at = [], 0
    most = chance.choice((1 + len(raw) // 300, 5000, 1 << 18))
    while at < len(raw):
        size = chance.randrange(1, most + 1)
        chunks.append(raw[at : at + size])
        at += size
    return chunks


def broken_rule(raw: bytes, chance: random.Random) -> str:
    """Which rule the input breaks, "" if none."""
    start = time.process_time()
    try:
        one = _answer([raw], how=fast)
        took = time.process_time() - start
        chunks = cut(raw, chance)
        others = (("the plain finder", _answer([raw], how=plain)),
                  ("other chunks", _answer(chunks, how=fast)),
                  ("other chunks, plainly", _answer(chunks, how=plain)))  # fmt: skip
        for what, other in others:
            if other != one:
                return f"another answer by {what}"
        diagnosis_document(one)
        redact_text(diagnosis_text(one, explain=True))
        if chance.random() < _FOLLOWED and _follow([raw]) != _follow(chunks):
            return "another live answer by other chunks"
    except Exception:  # noqa: BLE001  that is what is looked for
        return traceback.format_exc()
    if took > SLOW_S * max(1.0, len(raw) / 300_000):
        return f"{took:.1f} s for {len(raw)} bytes"
    return ""


def _answer(chunks: Sequence[bytes], *, how: Callable[..., object]) -> Diagnosis:
    return diagnose(chunks, _CAUSES, source="x", table=_TABLE, finder=how)  # type: ignore[arg-type]


def _follow(chunks: Sequence[bytes]) -> tuple[str, int, int]:
    live = _live()
    for chunk in chunks:
        live.feed(chunk)
    return live.phase, live.ready_line, live.fatal_line


def _live() -> Live:
    return Live(_CAUSES, finder=fast)


def main() -> int:
    """Run for some minutes; stop at the first broken rule and keep its input."""
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None, help="repeat one input")
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1 << 40)
    end = time.monotonic() + given.minutes * 60
    before, count = _peak_mb(), 0
    while time.monotonic() < end:
        chance = random.Random(seed)
        raw = chance.choice(MAKERS)(chance)
        why = broken_rule(raw, chance)
        if not why and count == 200:
            before = _peak_mb()  # everything is loaded by now
        if not why and count > 200 and _peak_mb() - before > MORE_MB:
            why = f"the process grew by {_peak_mb() - before:.0f} MB"
        if why:
            kept = Path(f"fuzz-{seed}.log")
            kept.write_bytes(raw)
            sys.stderr.write(f"{why}\nseed {seed}; the input is in {kept} ({len(raw)} bytes)\n")
            return 1
        count += 1
        if given.seed is not None:
            break
        seed += 1
    sys.stderr.write(f"{count} inputs, no rule broken; the next seed is {seed}\n")
    return 0


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


if __name__ == "__main__":
    sys.exit(main())

"""A prefix that nobody told triage of is learned from the log, and nothing of the engine's is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from triage.core.log.diagnose import diagnose
from triage.core.log.framing import learned, prefix_of
from triage.knowledge.stored import load_causes

CASES = Path(__file__).parents[3] / "fixtures/cases"
LOGS = (
    "graph-capture-oom--one-rank-of-eight",
    "kv-pool-no-memory-left--tiny-fraction",
    "python-module-missing--vllm",
)
FRAMES: dict[str, Callable[[int, str], str]] = {
    "syslog without a host": lambda n, t: f"Jun 28 14:00:{n % 60:02d} {t}",
    "monotonic journal": lambda n, t: f"[{12345 + n:6d}.{n:06d}] node7 sglang[4242]: {t}",
    "stern": lambda n, t: f"sglang-0 server {t}",
    "pm2": lambda n, t: f"0|sgl  | {t}",
    "a host": lambda n, t: f"gpu07: {t}",
    "a name in brackets": lambda n, t: f"[sglang] {t}",
    "torchrun": lambda n, t: f"[default0]:{t}",
    "an actor with a rank": lambda n, t: f"(SGLangActor(rank=0) pid=88) {t}",
    "levels": lambda n, t: f"{('INFO', 'ERROR')[n % 2]} launcher: {t}",
    "quoted": lambda n, t: f"> {t}",
    "indented": lambda n, t: f"    {t}",
    "numbered": lambda n, t: f"{n:5d}  {t}",
    "a stamp in brackets": lambda n, t: f"[2026-06-28T14:00:{n % 60:02d}.{n:03d}Z] {t}",
    "a time in brackets": lambda n, t: f"[2026-06-28 14:00:{n % 60:02d}] {t}",
    "a time and an actor": lambda n, t: f"[2026-06-28 14:00:{n % 60:02d}] (Actor pid=88) {t}",
    "journald's JSON": lambda n, t: json.dumps({"__REALTIME_TIMESTAMP": str(n), "MESSAGE": t}),
    "a collector's JSON": lambda n, t: json.dumps({"ts": "2026-06-28T14:00:00Z", "msg": t}),
}


def _logs() -> list[Path]:
    found = [CASES / name / "server.log" for name in LOGS]
    return [path for path in found if path.exists()] or pytest.fail("the cases are gone")


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("path", _logs(), ids=lambda path: path.parent.name)
def test_an_unknown_prefix_changes_nothing(path: Path, frame: str) -> None:
    raw = path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
    causes = load_causes()
    bare = diagnose([(raw + "\n").encode()], causes)
    framed = "\n".join(FRAMES[frame](n, t) for n, t in enumerate(raw.split("\n"), 1)) + "\n"
    found = diagnose([framed.encode()], causes)
    assert (found.cause, found.phase, found.ranks) == (bare.cause, bare.phase, bare.ranks)
    assert bare.root
    assert found.root
    assert (found.root.line, found.root.text) == (bare.root.line, bare.root.text)
    assert (
        framed.encode()[found.root.offset :].split(b"\n")[0].decode()
        == framed.split("\n")[found.root.line - 1]
    )


@pytest.mark.parametrize(
    "path", sorted(CASES.glob("*/server.log"))[::9], ids=lambda p: p.parent.name
)
def test_nothing_is_learned_from_a_log_of_a_known_shape(path: Path) -> None:
    assert prefix_of(path.read_bytes()) is None


def test_one_traceback_behind_a_word_is_no_prefix() -> None:
    raw = b"".join(
        b"Exception in a thread: Traceback (most recent call last):\nnote %d\n" % n
        for n in range(3)
    )
    assert prefix_of(raw) is None


def test_learning_gives_all_chunks_back() -> None:
    chunks = [b"a" * 40_000, b"b" * 40_000, b"c"]
    pattern, again = learned(chunks)
    assert pattern is None
    assert list(again) == chunks

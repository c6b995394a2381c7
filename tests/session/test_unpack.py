"""A compressed log is read like a plain one, in bounded steps, and a broken one says so."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from triage.errors import HostError, UsageError
from triage.session.logs import classify, log_sources
from triage.session.unpack import unpacked

LOG = (
    b"[2026-07-01 12:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
    b'  File "a.py", line 1, in f\n    g()\nRuntimeError: CUDA error: an illegal memory access was '
    b"encountered\n"
)
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


@pytest.fixture(params=PACKERS)
def pack(request: pytest.FixtureRequest) -> Callable[[bytes], bytes]:
    return PACKERS[request.param]


def whole(raw: bytes, size: int = 1000) -> bytes:
    return b"".join(unpacked([raw[at : at + size] for at in range(0, len(raw), size)], "x"))


def test_a_packed_log_is_diagnosed_like_the_log(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    (tmp_path / "a.log").write_bytes(LOG)
    (tmp_path / "b.log.packed").write_bytes(pack(LOG))
    plain, packed = classify(str(tmp_path / "a.log")), classify(str(tmp_path / "b.log.packed"))
    assert plain.root is not None
    assert (packed.cause, packed.root) == (plain.cause, plain.root)


def test_several_streams_in_a_file_are_one_log(pack: Callable[[bytes], bytes]) -> None:
    assert whole(pack(LOG) + pack(b"and more")) == LOG + b"and more"


def test_what_expands_far_comes_in_small_chunks(pack: Callable[[bytes], bytes]) -> None:
    chunks = list(unpacked([pack(b"\n" * 40_000_000)], "x"))
    assert sum(map(len, chunks)) == 40_000_000
    assert max(map(len, chunks)) <= 1 << 18


def test_padding_behind_the_end_is_none_of_the_log() -> None:
    assert whole(gzip.compress(LOG) + b"\0" * 512) == LOG


def test_a_damaged_log_says_so_and_how_to_read_the_rest(pack: Callable[[bytes], bytes]) -> None:
    packed = bytearray(pack(random.Random(1).randbytes(500_000).hex().encode()))
    packed[100:] = b"\xff\xfe" * 40_000
    with pytest.raises(UsageError, match="damaged or cut off") as caught:
        whole(bytes(packed))
    assert "cat x | triage classify" in caught.value.hint


@pytest.mark.parametrize("kind", ["gz", "xz", "bz2"])
def test_a_log_that_is_cut_off_says_so(kind: str) -> None:
    with pytest.raises(UsageError, match="cut off"):
        whole(PACKERS[kind](LOG)[:-9])


def test_zstd_without_a_package_names_two_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    with pytest.raises(HostError, match="pip install zstandard") as caught:
        whole(PACKERS["zst"](LOG))
    assert caught.value.hint == "zstdcat x | triage classify"


def test_a_folders_rotated_and_packed_logs_are_found(tmp_path: Path) -> None:
    names = ("a.log", "a.log.1", "a.log.2.gz", "b.log.zst", "c.log-20260701.xz", "d.txt.bz2")
    for name in (*names, "e.gz", "f.py", "log"):
        (tmp_path / name).write_bytes(b"x")
    found = [Path(source).name for source in log_sources([str(tmp_path)])]
    assert found == sorted(names)

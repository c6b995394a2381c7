"""A long line that a container runtime cut is one line again."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from triage.core.causes import Cause
from triage.core.log.diagnose import diagnose
from triage.core.log.finder import Compile, Plain
from triage.finder import fast

SKY = Cause(id="sky", title="t", patterns=(r"the sky fell on (?P<who>\w+)",))
FINDERS = pytest.mark.parametrize("finder", [Plain, fast], ids=["plain", "fast"])
LONG = "x" * 15_000 + " the sky fell on us " + "y" * 9000 + " and the sky fell on them"


def cri(text: str, *, size: int = 16_384, stream: str = "stderr") -> str:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    kinds = ["P"] * (len(pieces) - 1) + ["F"]
    return "".join(
        f"2026-07-01T12:00:00.12345678{n % 10}Z {stream} {kind} {piece}\n"
        for n, (piece, kind) in enumerate(zip(pieces, kinds, strict=True))
    )


def docker(text: str, *, size: int = 16_384) -> str:
    text += "\n"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return "".join(
        json.dumps({"log": piece, "stream": "stderr", "time": "2026-07-01T12:00:00.5Z"},
                   separators=(",", ":")) + "\n"
        for piece in pieces
    )  # fmt: skip


def root(raw: str, finder: Compile, causes: Sequence[Cause] = (SKY,)) -> tuple[str, int] | None:
    chunks = [raw.encode()[at : at + 5000] for at in range(0, len(raw.encode()), 5000)]
    found = diagnose(chunks, causes, finder=finder).root
    return (found.text, found.line) if found else None


@FINDERS
@pytest.mark.parametrize("cut", [cri, docker])
def test_a_text_that_the_cut_goes_through_is_found(cut: object, finder: Compile) -> None:
    head = "[2026-07-01 12:00:00 TP1] "
    text = head + "x" * (16_384 - len(head) - 8) + " the sky fell on us " + "y" * 5000
    for size in range(16_370, 16_400, 3):
        found = root("a\n" + cut(text, size=size), finder)  # type: ignore[operator]
        if found is None:  # the text itself is torn: no piece has it whole
            assert 16_377 <= size <= 16_384 + 12
            continue
        assert "the sky fell on us" in found[0]
        # A first piece of Docker's with nothing of note is not looked at.
        assert found[1] == 2 or (cut is docker and found[1] == 3)


@FINDERS
@pytest.mark.parametrize("cut", [cri, docker])
def test_a_dump_in_pieces_is_read_whole(cut: object, finder: Compile) -> None:
    fields = ", ".join(f"'unknown_{n}': {n}" for n in range(1500))
    text = f"[2026-07-01 12:00:00] server_args={{'model_path': '/m', {fields}, 'tp_size': 8}}"
    assert len(text) > 30_000
    raw = cut(text) + cri("[2026-07-01 12:00:01 TP0] the sky fell on us")  # type: ignore[operator]
    assert diagnose([raw.encode()], [SKY], finder=finder).ranks_total == 8


@FINDERS
def test_two_streams_do_not_mix(finder: Compile) -> None:
    out, err = cri("o" * 30_000, stream="stdout").split("\n")[:2], cri(LONG).split("\n")[:2]
    raw = "\n".join([out[0], err[0], out[1], err[1]]) + "\n"
    found = root(raw, finder)
    assert found is not None
    assert found[1] == 2


@FINDERS
def test_a_piece_without_its_end_counts_at_the_end_of_the_log(finder: Compile) -> None:
    first = cri(LONG).split("\n")[0]
    found = root(first + "\n", finder)
    assert found is not None
    assert "the sky fell on us" in found[0]


@FINDERS
def test_places_in_a_long_docker_record_are_found_behind_escapes(finder: Compile) -> None:
    text = '"\\\t<>&' * 900 + " the sky fell on us"
    raw = docker(text, size=100_000).replace("<", "\\u003c").replace(">", "\\u003e")
    found = root(raw, finder)
    assert found is not None
    assert "the sky fell on us" in found[0]


@FINDERS
def test_a_record_between_the_states_of_a_bar_is_seen(finder: Compile) -> None:
    bar = "".join(f"\rloading: {n}%|###| {n}/99 [00:01<00:03, 9.8it/s]" for n in range(40))
    raw = f"{bar}\r[2026-07-01 12:00:00 TP2] the sky fell on us{bar}\n"
    found = root(raw, finder)
    assert found is not None
    assert found[0] == "the sky fell on us"

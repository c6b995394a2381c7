"""Lines of a log around one of them, with their numbers and seconds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from triage.session.contents import numbered
from triage.session.excerpt import LONGEST, excerpt


def written(folder: Path, text: bytes) -> Path:
    path = folder / "server.log"
    path.write_bytes(text)
    return path


DATED = b"".join(b"[2026-01-01 00:00:%02d TP0] line %d\n" % (n, n + 1) for n in range(30))


def test_lines_around_are_quoted_with_their_numbers(tmp_path: Path) -> None:
    found = excerpt(written(tmp_path, DATED), 10, before=2, after=1)
    assert [number for number, _ in found.lines] == [8, 9, 10, 11]
    assert found.lines[2][1] == "[2026-01-01 00:00:09 TP0] line 10"
    assert (found.at_s, found.end_s) == (9.0, 29.0)


def test_at_the_ends_of_a_log_there_are_fewer(tmp_path: Path) -> None:
    log = written(tmp_path, DATED)
    assert [n for n, _ in excerpt(log, 1, before=5, after=1).lines] == [1, 2]
    assert [n for n, _ in excerpt(log, 30, before=1, after=5).lines] == [29, 30]
    assert excerpt(log, 0, before=5, after=0).lines == ()


def test_a_log_without_dates_has_no_seconds(tmp_path: Path) -> None:
    found = excerpt(written(tmp_path, b"a\nb\nc\n"), 2)
    assert (found.at_s, found.end_s) == (None, None)
    assert len(found.lines) == 3


def test_a_line_of_any_length_is_cut_and_says_how_long_it_was(tmp_path: Path) -> None:
    found = excerpt(written(tmp_path, b"a\n" + b"x" * 3_000_000 + b"\nb\n"), 2)
    assert [n for n, _ in found.lines] == [1, 2, 3]
    assert len(found.lines[1][1]) < LONGEST + 40
    assert found.lines[1][1].startswith("xxx")
    assert found.lines[2][1] == "b"


@pytest.mark.parametrize("size", [1, 1 << 18, (1 << 18) + 1, 3 << 20])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_lines_are_numbered_as_an_editor_numbers_them(
    tmp_path: Path, size: int, end: bytes
) -> None:
    text = b"a\n\n" + b"x" * size + b"\n" + b"y" * size + end
    found = [(n, line[:1]) for n, line in numbered(written(tmp_path, text))]
    assert found == [(1, b"a"), (2, b""), (3, b"x"), (4, b"y")]


def test_of_a_traceback_in_one_line_the_lines_around_the_root_are_quoted(tmp_path: Path) -> None:
    said = (
        "Traceback (most recent call last):\n" + '  File "a", line 1, in f\n' * 40 + "ValueError: x"
    )
    record = json.dumps({"ts": "2026-01-01T00:00:00Z", "message": said}).encode()
    found = excerpt(written(tmp_path, b"a\n" + record + b"\nb\n"), 2, "ValueError: x", before=2)
    assert found.lines == (
        (1, "a"),
        (2, '  File "a", line 1, in f'),
        (2, '  File "a", line 1, in f'),
        (2, "ValueError: x"),
        (3, "b"),
    )

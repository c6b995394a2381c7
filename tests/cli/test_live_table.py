"""A search as a person in a terminal sees it: a table below the lines, and Ctrl-C in the middle."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from triage.replay.landscape import Ending, write_landscape

pytestmark = pytest.mark.real
STARTS = Ending(ends="starts")
FAILS = Ending(ends="exception", phase="weight-load", exception="ValueError", message="no room")


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    write_landscape(tmp_path / "l.yaml", {frozenset(): STARTS, frozenset({"flag-a"}): FAILS})
    path = tmp_path / "r.yaml"
    path.write_text(
        "schema: triage.recipe/1\nname: r\nengine: replay\nspeed: 200\nlandscape: l.yaml\n"
        "baseline: {flags: {model-path: /m}}\nwanted: [{flag: flag-a}]\n"
    )
    return path


def on_terminal(
    recipe: Path, *words: str, stop_at: str = "", env: dict[str, str] | None = None
) -> tuple[int, str]:
    """Exit code and everything written; `stop_at`: press Ctrl-C once this was written."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    done = subprocess.Popen(
        [sys.executable, "-m", "triage", "bisect", str(recipe), "--session", "s", *words],
        stdin=child, stdout=child, stderr=child, cwd=recipe.parent, start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color", **(env or {})},
    )  # fmt: skip
    os.close(child)
    written = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            written += os.read(parent, 65536)
        except OSError:  # the other end has gone
            break
        if stop_at and stop_at.encode() in written:
            stop_at = ""
            done.send_signal(signal.SIGINT)
    os.close(parent)
    return done.wait(30), written.decode()


def test_the_table_is_drawn_and_taken_away_again(recipe: Path) -> None:
    code, written = on_terminal(recipe, env={"NO_COLOR": "1"})
    assert code == 0
    assert re.search(r"flag-a +· +●", written)
    assert "S starts  F as searched" in written
    assert written.rstrip().rpartition("\x1b[?25h")[0], "the cursor is shown again"
    left = written.rpartition("\x1b[?25h")[2]
    assert "next: triage confirm s" in left
    assert not re.search(r"\x1b\[[0-9;]*[1-9][0-9;]*m", written), "NO_COLOR: no colour"


def test_ctrl_c_gives_the_terminal_back_and_says_how_to_go_on(recipe: Path) -> None:
    code, written = on_terminal(recipe, stop_at="trial 2")
    assert code == 130
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h"), "the cursor is shown again"
    assert "Traceback" not in written
    assert "type the same command again" in written.rpartition("\x1b[?25h")[2]


def test_a_dumb_terminal_gets_lines_only(recipe: Path) -> None:
    code, written = on_terminal(recipe, env={"TERM": "dumb"})
    assert code == 0
    assert "\x1b[" not in written
    assert "trial 1/" in written


def test_launches_at_the_same_time_have_a_column_and_a_line_each(recipe: Path) -> None:
    code, written = on_terminal(recipe, "--nodes", "2", env={"NO_COLOR": "1"})
    assert code == 0
    assert re.search(r"flag-a +· +●.*▸ +▸", written, re.DOTALL), "both ends are in flight"
    assert re.search(r"  trial 1: .*\n.*  trial 2: ", written)
    assert re.search(r"at most \d more launch", written)
    assert "trial 1: STARTS" in written or "trial 2: FAILS" in written

"""One launch as it was typed: which port it uses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from triage.core.launch import Crashed
from triage.session import once

pytestmark = pytest.mark.real


def run(words: tuple[str, ...], folder: Path) -> list[str]:
    said: list[str] = []
    done = once.run_once(words, folder, silent_s=20, total_s=30, settle_s=2, say=said.append)
    assert done.capture.outcome == Crashed(exit_code=3)
    return said


def test_no_block_of_ports_is_reserved_for_a_command_that_names_its_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_is_free() -> None:
        raise AssertionError("a block was asked for")

    monkeypatch.setattr(once, "free_port", none_is_free)
    words = (sys.executable, "-c", "import sys; print(sys.argv[1:]); sys.exit(3)")
    named = ("--model-path", "/models/tiny", "--port", "10999")
    said = run((*words, *named), tmp_path / "one")
    assert not any(text.startswith("port: ") for text in said)
    log = (tmp_path / "one/trials/001/server.log").read_text()
    assert log == "['--model-path', '/models/tiny', '--port', '10999']\n"


def test_a_command_without_a_port_gets_a_free_one(tmp_path: Path) -> None:
    words = (sys.executable, "-c", "import sys; print(sys.argv[-2:]); sys.exit(3)")
    said = run((*words, "--model-path", "/models/tiny"), tmp_path / "one")
    (port,) = (text.split()[1] for text in said if text.startswith("port: "))
    assert (tmp_path / "one/trials/001/server.log").read_text() == f"['--port', '{port}']\n"

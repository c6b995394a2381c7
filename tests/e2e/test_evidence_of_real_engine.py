"""What launches of real SGLang leave beside their logs."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from mended import COMMON, ENGINE, ENV, ROOT

from triage.core.config import Config
from triage.core.launch import Patience, Ready
from triage.launch import tree
from triage.launch.deaths import process_name
from triage.session.evidence import evidence_lines, read_evidence
from triage.session.trial import Setup, launch_once

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not (ROOT / ".sglang/bin/python").exists(), reason="make sglang-cpu"),
]
SETUP = Setup(
    program=(str(ROOT / ENGINE[0]), *ENGINE[1:]),
    env=tuple(ENV.items()),
    cwd=ROOT,
    patience=Patience(silent_s=120, total_s=280),
    engine="sglang",
)
CONFIG = Config.of(
    {
        "model-path": ".models/tiny",
        "model-impl": "transformers",
        "mem-fraction-static": "0.1",
        "max-total-tokens": "4096",
        "device": "cpu",
        "attention-backend": "torch_native",
        "disable-overlap-schedule": True,
        "api-key": "my-own-key-of-this-test",
    },
    {},
)


def test_a_server_that_comes_up_tells_of_itself_and_each_process_of_its_end(tmp_path: Path) -> None:
    assert COMMON
    (tmp_path / "session.json").write_text("{}")
    folder = tmp_path / "trials/001"
    result = launch_once(SETUP, CONFIG, folder)
    assert isinstance(result.capture.outcome, Ready)
    stored = json.loads((folder / "server_info.json").read_text())
    assert stored["told"]["version"] == "0.5.23"
    assert "my-own-key-of-this-test" not in (folder / "server_info.json").read_text()
    environment = json.loads((tmp_path / "environment.json").read_text())
    assert environment["packages"]["sglang"] == "0.5.23"
    assert environment["packages"]["torch"].startswith("2.")
    names = {one.name for one in result.capture.exits}
    assert any(name.startswith("sglang::scheduler") for name in names), names
    assert any(name.startswith("sglang::detokenizer") for name in names), names
    assert all(one.exit_code is not None for one in result.capture.exits if one.name)
    found = read_evidence(folder)
    assert found is not None
    assert len(evidence_lines(found, folder)) == 6


def test_a_scheduler_that_is_killed_while_it_loads_is_the_first_to_end(tmp_path: Path) -> None:
    over = threading.Event()

    def kill() -> None:
        while not over.wait(0.2):
            log = tmp_path / "server.log"
            if not log.exists() or b"Init parallel" not in log.read_bytes():
                continue
            for proc in tree.descendants([os.getpid()], tree.table()):
                if process_name(proc.pid).startswith("sglang::scheduler"):
                    time.sleep(1.2)  # the guard has seen its title by then
                    os.kill(proc.pid, signal.SIGKILL)
                    return

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        result = launch_once(SETUP, CONFIG, tmp_path)
    finally:
        over.set()
        killer.join()
    assert "first to end: sglang::scheduler (process " in result.diagnosis.outside[0]
    assert "by SIGKILL" in result.diagnosis.outside[0]
    killed = [one for one in result.capture.exits if one.exit_code == -9 and not one.by_us]
    assert killed[0].name.startswith("sglang::scheduler")

"""Real SGLang on the CPU: from the log of a failure to a server that answered, by triage alone.

`make e2e` plays three of the failures and the stranger on the port, `make e2e-full` all of
them, the search for a number and the flaky start, and writes the table of bench/MENDING.md.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from mended import ENV, FAILURES, ROOT, Failure, late_listener, mend, note, triage
from traces import Descendants

QUICK = ("wrong-value", "another-engines-flags", "page-and-chunk")  # a start each


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No process, listening port or shared-memory file of a launch outlives its test."""
    with Descendants() as descendants:
        yield
    assert descendants.count > 2, "the launches were seen"
    assert descendants.left() == []


def judge(row: dict[str, Any], failure: Failure) -> None:
    assert row["cause"] == failure.cause
    if not failure.mends:
        assert (row["exit"], row["works"], row["found"]["stop"]) == (12, False, "nothing-left")
        assert row["found"]["command"] == ""
        return
    assert row["exit"] == 0, row
    assert row["works"] is True
    found = row["found"]
    shown = found["confirmation"]
    assert shown["confirmed"] is True
    assert shown["simulated"] is False
    assert all(e["answers"][0] == e["answers"][1] != "" for e in shown["exchanges"])
    assert shown["versions"]["sglang"] == "0.5.23"
    assert len(found["attempts"]) <= 6
    assert found["command"]


@pytest.mark.e2e
@pytest.mark.parametrize("name", QUICK)
def test_a_real_failure_is_mended_from_its_log(name: str, tmp_path: Path) -> None:
    judge(mend(name, tmp_path), FAILURES[name])


@pytest.mark.e2e_full
@pytest.mark.parametrize("name", FAILURES)
def test_every_real_failure_is_mended_from_its_log(name: str, tmp_path: Path) -> None:
    judge(mend(name, tmp_path), FAILURES[name])


HEALTHY = Failure("a command that starts", (), None)


def command_file(folder: Path, failure: Failure = HEALTHY, env: str = "") -> Path:
    path = folder / "cmd.sh"
    path.write_text(f"{env} {shlex.join(failure.command())}\n")
    return path


@pytest.mark.e2e
def test_a_stranger_on_the_port_is_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SGLang itself then prints that it is ready, after it failed to bind."""
    from triage.session.candidate import command_session, named
    from triage.session.confirm import Wish, prove

    monkeypatch.chdir(ROOT)
    for name, value in ENV.items():
        monkeypatch.setenv(name, value)
    found = named(command_file(tmp_path))
    assert found.candidate is not None
    log = tmp_path / "s/confirmation/001/server.log"
    ports: list[int] = []

    def look(_: str) -> None:
        told = (
            re.search(r"'port': (\d+)", log.read_text(errors="replace")) if log.exists() else None
        )
        if told and not ports:
            ports.append(int(told[1]))

    with PortLater(ports) as asked:
        shown = prove(command_session(found, tmp_path / "s"), found.candidate, Wish(repeat=1), look)
    assert not shown.confirmed
    assert shown.starts[0].cause == "http-port-in-use"
    assert "http-port-in-use" in shown.reason
    assert not any(path.startswith("/generate") for path in asked), "no other is asked for answers"
    what = "a stranger takes the port while it loads and says yes to everything"
    note({"name": "stranger", "what": what, "said": "not confirmed: http-port-in-use"})


class PortLater:
    """A stranger who takes the launch's port as soon as it is known which one that is."""

    def __init__(self, ports: list[int]) -> None:
        self.ports = ports
        self.asked: list[str] = []
        self.over = Event()
        self.thread = Thread(target=self._wait, daemon=True)

    def _wait(self) -> None:
        while not self.ports and not self.over.wait(0.05):
            continue
        if not self.over.is_set():
            with late_listener(self.ports[0], lambda: True, after_s=0) as asked:
                self.over.wait()
                self.asked += asked

    def __enter__(self) -> list[str]:
        self.thread.start()
        return self.asked

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join(10)
        assert self.ports, "the port was seen"


@pytest.mark.e2e_full
def test_the_largest_context_is_found_within_log2_launches(tmp_path: Path) -> None:
    done = triage(
        "confirm", command_file(tmp_path), "--largest", "context-length=128..1024:128",
        "--any-text", "--session", tmp_path / "s", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    found = json.loads(done.stdout)
    assert found["confirmation"]["config"]["flags"]["context-length"] == 512
    assert found["say"].startswith("--context-length 512 is the largest that came up and passed")
    assert found["launches"] <= 4, "log2 of 8 values"
    causes = {a["cause"] for a in found["attempts"] if not a["works"]}
    assert causes == {"context-length-over-derived"}
    said = f"512, in {found['launches']} launches of at most 4"
    note({"name": "largest", "what": "the largest context of 128, 256, .., 1024", "said": said})


# Kills the scheduler of the second start while it loads, as the kernel's OOM killer would.
FAULT = """
import os, sys, threading, time
if "sglang.launch_server" in sys.orig_argv[:4]:
    count = {count!r}
    with open(count, "a") as file:
        file.write("x")
    def kill(main=os.getpid()):
        while True:
            time.sleep(0.05)
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    name = open(f"/proc/{{pid}}/comm").read()
                    parent = int(open(f"/proc/{{pid}}/stat").read().rpartition(")")[2].split()[1])
                except OSError:
                    continue
                if parent == main and name.startswith("sglang::schedul"):
                    os.kill(int(pid), 9)
                    return
    if os.path.getsize(count) == 2:
        threading.Thread(target=kill, daemon=True).start()
"""


@pytest.mark.e2e_full
def test_a_flaky_start_is_reported_with_its_counts(tmp_path: Path) -> None:
    (tmp_path / "faults").mkdir()
    fault = FAULT.format(count=str(tmp_path / "count"))
    (tmp_path / "faults/sitecustomize.py").write_text(fault)
    env = {"PYTHONPATH": str(tmp_path / "faults")}
    began = time.monotonic()
    done = triage(
        "confirm", command_file(tmp_path), "--repeat", "3", "--any-text",
        "--session", tmp_path / "s", "--json", env=env,
    )  # fmt: skip
    assert done.returncode == 13, done.stdout
    shown = json.loads(done.stdout)
    assert (shown["flaky"], shown["confirmed"]) == (True, False)
    assert shown["count"] == {"up": 2, "starts": 3}
    assert shown["reason"].startswith("flaky: 2 of 3 starts came up; start 2: the launch failed")
    assert time.monotonic() - began < 800
    what = "three starts, the scheduler of the second killed while it loads"
    note({"name": "flaky", "what": what, "said": "flaky, 2 of 3 starts came up"})

"""What a failed launch leaves on each target: the end of every process, and the stacks of a crash.

Run by `make parts`. A part that is not there is skipped with its reason.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from launch_bench import LineWatcher
from parts import ENGINE, PYTHON, alive, place, require

from triage.core.config import Config
from triage.core.evidence import KINDS
from triage.core.launch import Crashed, LaunchSpec, Patience
from triage.launch import free_port, launch
from triage.session.evidence import read_evidence
from triage.session.trial import Setup, launch_once

pytestmark = pytest.mark.parts
KINDS_OF_PLACE = ("process", "systemd", "container", "slurm")
SECRET = "hf_" + "PlantedSecretOfTheTest"


@pytest.fixture(params=KINDS_OF_PLACE)
def kind(request: pytest.FixtureRequest) -> str:
    require(request.param)
    return str(request.param)


@pytest.fixture
def port() -> Iterator[int]:
    with free_port() as first:
        yield first


def spec_of(kind: str, port: int, *deeds: str) -> LaunchSpec:
    return LaunchSpec(
        argv=(PYTHON, str(ENGINE), str(port), *deeds),
        env=(("HF_TOKEN", SECRET),),
        cwd=str(Path.cwd()),
        port=port,
        patience=Patience(silent_s=20, total_s=60, settle_s=5.0),
        place=place(kind),
    )


def test_a_rank_that_was_killed_is_told_as_the_first_to_end(
    kind: str, port: int, tmp_path: Path
) -> None:
    spec = spec_of(kind, port, "rank:TP0", "rank:TP1,9,2.5", "sleep:7", "exit:1")
    capture = launch(spec, tmp_path, LineWatcher())
    assert capture.outcome == Crashed(exit_code=1)
    told = json.loads((tmp_path / "exit.json").read_text())["processes"]
    killed = [one for one in told if one["rank"] == "TP1"]
    assert killed, told
    assert {(one["exit_code"], one["by_us"]) for one in killed} == {(-signal.SIGKILL, False)}
    main = [one for one in told if one["exit_code"] == 1]
    assert min(one["seconds"] for one in killed) < min(one["seconds"] for one in main)
    if kind == "slurm":
        assert {one["name"].rpartition(" on ")[2] for one in killed} <= {"node 0", "node 1"}
    assert not alive(port)


def test_the_live_processes_of_a_crash_are_read(kind: str, port: int, tmp_path: Path) -> None:
    spec = spec_of(kind, port, "rank:TP0", "sleep:1", "say:FATAL", "hang")
    watcher = LineWatcher()
    if kind == "slurm":  # each line stands behind the number of its node
        spec = spec_of(kind, port, "rank:TP0", "sleep:1", "say:\nFATAL", "hang")
        watcher = _Anywhere()
    capture = launch(spec, tmp_path, watcher)
    assert isinstance(capture.outcome, Crashed)
    text = Path(capture.stacks).read_text()
    assert "hang (" in text
    assert "sglang::scheduler_TP0" in text
    if kind == "slurm":
        assert "== node " in text
    assert SECRET not in text
    assert not alive(port)


def test_each_kind_of_evidence_is_there_or_said_to_be_missing(kind: str, tmp_path: Path) -> None:
    setup = Setup(
        program=(PYTHON, str(ENGINE), "0", "say:up", "sleep:1", "exit:1"),
        env=(("HF_TOKEN", SECRET),),
        cwd=Path.cwd(),
        patience=Patience(silent_s=20, total_s=60),
        engine="sglang",
        place=place(kind),
    )
    # The engine takes the flags for deeds that it does not know, after it has ended.
    launch_once(setup, Config(), tmp_path)
    found = read_evidence(tmp_path)
    assert found is not None
    assert tuple(one.kind for one in found.pieces) == KINDS
    assert all(bool(one.say) != bool(one.missing) for one in found.pieces), found.pieces
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file


class _Anywhere(LineWatcher):
    """The fatal line behind a node's number."""

    def feed(self, raw: bytes) -> None:
        super().feed(raw)
        if b": FATAL" in self.seen and not self.fatal_line:
            self.fatal_line = 1 + self.seen[: self.seen.index(b": FATAL")].count(b"\n")

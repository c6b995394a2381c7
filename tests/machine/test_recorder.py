"""The GPUs of a launch, recorded by the real pynvml over the stand-in for the driver's library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_gpus import FakeGpus

from triage.core.evidence import gpu_lines
from triage.machine import recorder
from triage.machine.recorder import COLUMNS, Recorder


@pytest.fixture(autouse=True)
def _fast(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty readings a second, so that tests are short; they cost what they cost."""
    if "hundredth" not in request.node.name:
        monkeypatch.setattr(recorder, "SHARE", 1.0)


def recorded(path: Path, seconds: float, hertz: float = 50, phase: str = "weight-load") -> Recorder:
    made = Recorder(path, lambda: phase, hertz=hertz)
    made.begin()
    time.sleep(seconds)
    made.end()
    return made


def test_memory_is_followed_to_its_peak_and_the_phase_of_it(
    fake_gpus: FakeGpus, tmp_path: Path
) -> None:
    phases = ["weight-load"]
    made = Recorder(tmp_path / "gpus.jsonl", lambda: phases[0], hertz=50)
    made.begin()
    time.sleep(0.2)
    fake_gpus.set("2.used=90000", "3.used=120000")
    time.sleep(0.2)
    phases[0] = "graph-capture"
    fake_gpus.set("2.used=99000", "3.used=165000")
    time.sleep(0.2)
    fake_gpus.set("all.used=10")
    time.sleep(0.2)
    made.end()
    uses = made.uses(set())
    assert [use.peak_mib for use in uses][2:4] == [99000, 165000]
    assert (uses[3].before_mib, uses[3].peak_phase) == (0, "graph-capture")
    assert 0.3 < uses[3].peak_s < 1.5
    (line,) = gpu_lines(uses[2:4])
    assert line == (
        "memory peaked at 165000 MiB on GPU 3 in graph-capture (least: GPU 2, 99000 MiB)"
    )
    head, *rows = map(json.loads, (tmp_path / "gpus.jsonl").read_text().splitlines())
    assert tuple(head["columns"]) == COLUMNS
    assert len(head["gpus"]) == 8
    assert max(row[1][3][0] for row in rows) == 165000
    assert made.readings > len(rows), "what does not change is not written again"


def test_slowdowns_errors_and_lost_gpus_are_told(fake_gpus: FakeGpus, tmp_path: Path) -> None:
    made = Recorder(tmp_path / "g", lambda: "", hertz=50)
    made.begin()
    time.sleep(0.2)
    fake_gpus.set(
        "1.reasons=0x4", "5.reasons=0x44", "6.ecc_uncorrected=3", "7.xid=79", "0.fail.*=15"
    )
    time.sleep(0.4)
    made.end()
    uses = made.uses(set())
    assert dict(uses[5].slowed).keys() == {"power-cap", "hardware-thermal-slowdown"}
    assert dict(uses[1].slowed)["power-cap"] > 0.2
    said = "; ".join(gpu_lines(uses))
    assert "power-cap on GPUs 1, 5, up to 0." in said
    assert "GPU 6 had 3 uncorrected memory errors" in said
    assert "GPU 7 reported Xid 79" in said
    assert "GPU 0 stopped to answer: NVML: gpu is lost" in said


def test_links_are_counted_over_the_time_between_looks(fake_gpus: FakeGpus, tmp_path: Path) -> None:
    made = Recorder(tmp_path / "g", lambda: "", hertz=50)
    made.begin()
    time.sleep(0.25)
    fake_gpus.set("4.link_kib=1048576")
    time.sleep(0.3)
    made.end()
    uses = made.uses(set())
    assert uses[4].links_mib_s is not None
    assert uses[4].links_mib_s > 1000
    assert uses[3].links_mib_s == 0


def test_tenants_are_the_launch_s_or_foreign(fake_gpus: FakeGpus, tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "60"])
    try:
        fake_gpus.hold(2, os.getpid(), mib=5000)
        fake_gpus.hold(2, other.pid, mib=700)
        uses = recorded(tmp_path / "g", 0.3).uses({os.getpid()})
    finally:
        other.kill()
        other.wait()
    assert [(one.pid, one.memory_mib) for one in uses[2].tenants] == [(os.getpid(), 5000)]
    assert [(one.pid, one.name) for one in uses[2].foreign] == [(other.pid, "sleep")]
    assert f"process {other.pid} (sleep), which is none of the launch, held GPU 2" in gpu_lines(
        uses
    )


def test_five_readings_a_second_of_eight_gpus_take_less_than_a_hundredth_of_a_core(
    fake_gpus: FakeGpus, tmp_path: Path
) -> None:
    made = recorded(tmp_path / "g", 3.0, hertz=5)
    assert len(made.uses(set())) == 8
    assert made.readings >= 8
    assert made.share < 0.01


def test_a_driver_that_costs_more_is_read_less_often(
    fake_gpus: FakeGpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "SHARE", 0.0005)
    made = recorded(tmp_path / "g", 1.5, hertz=50)
    assert made.readings < 30


def test_a_driver_that_does_not_answer_is_not_waited_for(
    fake_gpus: FakeGpus, tmp_path: Path
) -> None:
    fake_gpus.set("0.wait.nvmlDeviceGetPowerUsage=2500")
    made = Recorder(tmp_path / "g", lambda: "", hertz=50)
    made.begin()
    time.sleep(0.2)
    began = time.monotonic()
    made.end(within_s=0.3)
    assert time.monotonic() - began < 2
    assert made.missing == "the driver does not answer"
    assert made._thread is not None
    made._thread.join(10)  # the library is unloaded after the test


def test_a_full_file_ends_the_file_and_not_the_summary(
    fake_gpus: FakeGpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MOST_BYTES", 600)
    made = Recorder(tmp_path / "g", lambda: "", hertz=50)
    made.begin()
    for used in range(1, 20):
        fake_gpus.set(f"all.used={used}")
        time.sleep(0.03)
    made.end()
    assert made.capped
    assert (tmp_path / "g").stat().st_size < 2500
    assert made.uses(set())[0].peak_mib == 19


def test_nothing_is_written_through_a_link(fake_gpus: FakeGpus, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "g").symlink_to(tmp_path / "precious")
    made = recorded(tmp_path / "g", 0.1)
    assert "cannot be written" in made.missing
    assert (tmp_path / "precious").read_text() == "mine"


def test_without_a_driver_nothing_of_it_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from triage.machine.recorder import Recorder\n"
        "made = Recorder(Path(sys.argv[1]), lambda: ''); made.begin(); made.end()\n"
        "print(made.missing, 'pynvml' in sys.modules, Path(sys.argv[1]).exists())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "g")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["none", "False", "False"]


def test_inside_a_container_nobody_is_called_foreign(
    fake_gpus: FakeGpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There the driver's numbers are the host's, and those of the launch are the container's."""
    monkeypatch.setattr(recorder, "_numbered_as_the_host", lambda: False)
    other = subprocess.Popen(["sleep", "60"])
    try:
        fake_gpus.hold(2, other.pid, mib=700)
        made = recorded(tmp_path / "g", 0.3)
    finally:
        other.kill()
        other.wait()
    assert made.uses({os.getpid()})[2].foreign == ()
    assert [one.pid for one in made.uses({other.pid})[2].tenants] == [other.pid]


def test_of_a_launch_that_is_given_some_gpus_only_those_are_read(
    fake_gpus: FakeGpus, tmp_path: Path
) -> None:
    made = Recorder(tmp_path / "g", lambda: "", only=(2, 3), hertz=50)
    made.begin()
    time.sleep(0.2)
    made.end()
    assert [use.index for use in made.uses(set())] == [2, 3]
    head, *rows = map(json.loads, (tmp_path / "g").read_text().splitlines())
    assert len(head["gpus"]) == 2
    assert {len(row[1]) for row in rows} == {2}

"""Real probes in real processes, without torch: each way to end is a result, and nothing is left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from triage.core.probes.meaning import explained
from triage.core.probes.results import ProbeResult, result_of
from triage.errors import UsageError
from triage.launch.probe import run_probe

pytestmark = pytest.mark.real
SOURCE = Path(__file__).parents[1] / "parts/multicast/fake_multicast.c"


def ran(
    name: str, *, limit_s: float = 5.0, start_s: float = 30.0, **arguments: object
) -> ProbeResult:
    made = run_probe(
        sys.executable, name, device="auto", limit_s=limit_s, arguments=arguments, start_s=start_s
    )
    return explained(
        result_of(
            name, made.output, exit_code=made.exit_code, by=made.by, silent=made.silent,
            seconds=made.seconds,
        )
    )  # fmt: skip


def test_every_way_to_end_an_experiment_is_an_outcome() -> None:
    ways = ["pass", "raise", "skip", "segv", "hang", "exit", "pass"]
    result = ran("self-test", limit_s=3.0, ways=ways)
    assert result.outcome == "done"
    assert [e.outcome for e in result.experiments] == [
        "passed", "failed", "skipped", "crashed", "hung", "crashed", "passed",
    ]  # fmt: skip
    raised, segv, hung = (result.experiments[i] for i in (1, 3, 4))
    assert raised.status == "CUBLAS_STATUS_ALLOC_FAILED"
    assert segv.status == "SIGSEGV"
    assert hung.detail == "no answer within 3 s"
    assert 2.9 < hung.seconds < 20


def test_what_an_experiment_leaves_behind_is_ended() -> None:
    result = ran("self-test", ways=["orphan"])
    assert result.experiments[0].outcome == "passed"
    assert alive_probes() == []


def test_a_probe_that_is_killed_is_a_result() -> None:
    result = ran("self-test", limit_s=20, ways=["pass", "kill-runner"])
    assert result.outcome == "killed"
    assert result.experiments[0].outcome == "passed", "what was found before is kept"
    assert "killed" in result.meaning[0]
    assert alive_probes() == []


def test_a_python_that_ends_at_once_or_says_nothing_is_a_result(tmp_path: Path) -> None:
    for text, outcome in (
        ("exit 7", "crashed"),
        ("echo no; sleep 60", "hung"),
        ("kill -9 $$", "killed"),
    ):
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\n{text}\n")
        python.chmod(0o755)
        made = run_probe(
            str(python), "self-test", device="auto", limit_s=1, arguments={}, start_s=2.5
        )
        result = result_of(
            "self-test", made.output, exit_code=made.exit_code, by=made.by, silent=made.silent,
            seconds=made.seconds,
        )  # fmt: skip
        assert result.outcome == outcome, text


def test_a_python_that_is_not_there_is_an_error_of_the_user() -> None:
    with pytest.raises(UsageError, match="was not found"):
        run_probe("/no/python", "self-test", device="auto", limit_s=1, arguments={})


def test_nothing_of_a_probe_outlives_triage() -> None:
    code = (
        "import sys; from triage.launch.probe import run_probe\n"
        "run_probe(sys.executable, 'self-test', device='auto', limit_s=60,"
        " arguments={'ways': ['orphan', 'hang']})"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 20
    while not alive_probes() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive_probes()
    process.send_signal(signal.SIGKILL)
    process.wait()
    while alive_probes() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive_probes() == []


TOKEN = f"triage-test-{os.getpid()}"


@pytest.fixture(autouse=True)
def told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probes of these tests from those of others beside them: by a variable."""
    monkeypatch.setenv("PROBE_OF_A_TEST", TOKEN)


def alive_probes() -> list[int]:
    """Processes that run the self-test and were started below this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            ours = f"PROBE_OF_A_TEST={TOKEN}".encode() in (entry / "environ").read_bytes()
        except OSError:
            continue
        probes = str(Path(__file__).parents[2] / "triage/probes").encode()
        if ours and probes in words and b"self-test" in words and state != "Z":
            found.append(int(entry.name))
    return found


@pytest.fixture(scope="session")
def libcuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build the stand-in for libcuda")
    target = tmp_path_factory.mktemp("cuda") / "libcuda.so.1"
    words = [
        compiler,
        "-shared",
        "-fPIC",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-o",
        target,
        SOURCE,
    ]
    subprocess.run([str(word) for word in words], check=True)
    return target


@pytest.mark.parametrize(
    ("told", "outcomes", "meaning"),
    [
        ("gpus=8", ["passed", "skipped", "passed"], "NVLS has what it needs"),
        ("attribute=0", ["passed", "skipped", "passed"], "NVLS must stay off"),
        ("add=401", ["passed", "skipped", "failed"], "401 CUDA_ERROR_ILLEGAL_STATE"),
        ("create=801", ["passed", "skipped", "failed"], "801 CUDA_ERROR_NOT_SUPPORTED"),
        ("init=-2", ["crashed", "skipped", "crashed"], "object"),
    ],
)
def test_multicast_of_a_driver(
    libcuda: Path, monkeypatch: pytest.MonkeyPatch, told: str, outcomes: list[str], meaning: str
) -> None:
    monkeypatch.setenv("FAKE_MULTICAST", told)
    result = ran("multicast", libcuda=str(libcuda), libnvml="/no/such/library")
    assert [e.outcome for e in result.experiments] == outcomes
    assert meaning in result.meaning[0]


def test_a_driver_that_hangs_is_a_result(libcuda: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MULTICAST", "init=-1")
    result = ran("multicast", limit_s=0.5, libcuda=str(libcuda), libnvml="/no/such/library")
    assert [e.outcome for e in result.experiments] == ["hung", "skipped", "hung"]
    assert result.outcome == "done"


def test_without_a_driver_multicast_is_unavailable() -> None:
    result = ran("multicast", libcuda="/no/such/library", libnvml="/no/such/library")
    assert result.outcome == "unavailable"
    assert result.reason.startswith("no driver here")


def test_the_document_of_a_result_fits_its_schema() -> None:
    from jsonschema import Draft202012Validator

    from triage.render.probe_document import probe_document

    schema = json.loads(
        (Path(__file__).parents[2] / "docs/schema/probe-1.json").read_text(encoding="utf-8")
    )
    for result in (
        ran("self-test", ways=["pass", "raise"]),
        ProbeResult(probe="x", outcome="hung"),
    ):
        made = probe_document(result)
        assert [e.message for e in Draft202012Validator(schema).iter_errors(made)] == []


def test_modules_in_the_folder_of_the_user_are_not_taken_for_those_of_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    assert ran("self-test", ways=["pass"]).outcome == "done"

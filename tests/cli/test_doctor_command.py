"""`triage doctor`, and what a search does with it, as a user meets them."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, is_an_error
from fake_gpus import FakeGpus
from jsonschema import Draft202012Validator

ROOT = Path(__file__).parents[2]
ENGINE = "import sys\nprint('ModuleNotFoundError: no such thing', flush=True)\nsys.exit(1)\n"
RECIPE = """\
schema: triage.recipe/1
name: faulty
launch: {command: [PYTHON, engine.py]}
baseline: {flags: {model-path: /m, tp-size: 8}}
wanted: [{flag: enable-nccl-nvls}]
"""
LANDSCAPE = ROOT / "fixtures/landscapes/kimi-k2.6-b300.yaml"


def schema(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((ROOT / f"docs/schema/{name}-1.json").read_text()))


@pytest.fixture
def faulty(fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch) -> FakeGpus:
    """A machine whose GPU 3 has uncorrected errors, for the processes of this test."""
    for name, value in fake_gpus.env.items():
        monkeypatch.setenv(name, value)
    fake_gpus.set("3.ecc_uncorrected=2", "all.numa=0")
    return fake_gpus


def test_a_machine_is_examined_in_text_of_80_columns_and_in_json(
    triage: Run, tmp_path: Path
) -> None:
    shown, told = triage("doctor", "--all"), triage("doctor", "--json")
    assert shown.returncode == told.returncode
    assert shown.returncode in (0, 14)
    assert shown.stderr == told.stderr == ""
    long = [line for line in shown.stdout.splitlines() if len(line) > 80]
    assert all(line.split()[0] in ("fix", "see") for line in long), long
    document = json.loads(told.stdout)
    assert list(schema("doctor").iter_errors(document)) == []
    assert document["target"] is None
    assert document["machine"]["system"] == "Linux"
    assert len(document["checks"]) > 70
    errors = [f for f in document["findings"] if f["severity"] == "error"]
    assert (told.returncode == 14) == bool(errors)
    assert list(tmp_path.iterdir()) == [], "nothing is written"


def test_an_error_of_the_hardware_is_shown_with_its_fix(triage: Run, faulty: FakeGpus) -> None:
    done = triage("doctor")
    assert done.returncode == 14
    lines = done.stdout.splitlines()
    assert " error" in lines[0]
    assert "  error    ecc: GPU 3 has 2 uncorrected memory errors." in lines
    assert "           fix    nvidia-smi -i 3 --gpu-reset" in lines
    assert triage("doctor", "--exit-zero").returncode == 0
    document = json.loads(triage("doctor", "--json").stdout)
    (found,) = [f for f in document["findings"] if f["id"] == "ecc"]
    assert found["prevents"] == ["gpu-hardware-ecc"]
    assert found["hardware"] is True
    assert document["machine"]["driver"] == "580.95.05"
    assert document["machine"]["gpus"][3]["name"] == "NVIDIA B300 SXM6 AC"


def test_a_command_is_examined_with_the_machine(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m/config.json").write_text('{"num_attention_heads": 64}')
    (tmp_path / "serve.sh").write_text(
        "python3 -m sglang.launch_server --model-path ./m --tp-size 3 --device cpu\n"
    )
    document = json.loads(triage("doctor", "serve.sh", "--json").stdout)
    assert document["target"] == "serve.sh"
    found = {f["id"]: f for f in document["findings"]}
    assert found["heads"]["say"] == "64 attention heads do not divide by 3 ranks."
    assert found["heads"]["fix"] == "--tp-size 2"
    assert "no-gpu" not in found, "the command runs on the CPU"


def test_a_file_of_flags_only_stands_for_a_server(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m/config.json").write_text('{"num_attention_heads": 64}')
    (tmp_path / "config.yaml").write_text("model-path: ./m\ntp-size: 3\n")
    document = json.loads(triage("doctor", "config.yaml", "--json").stdout)
    found = {f["id"] for f in document["findings"]}
    assert "heads" in found
    gpus = {c["id"]: c["state"] for c in document["checks"]}["no-gpu"]
    assert gpus in ("found", "sound"), "it wants a GPU"


def test_a_recipe_is_examined_with_everything_that_is_wanted(triage: Run, faulty: FakeGpus) -> None:
    faulty.set("all.numa=0", "all.name=NVIDIA H100 PCIe", "all.capability=90", "all.fabric_state=0")
    recipe = RECIPE.replace("[PYTHON, engine.py]", "[python3, -m, sglang.launch_server]")
    Path("r.yaml").write_text(recipe)
    document = json.loads(triage("doctor", "r.yaml", "--json").stdout)
    assert "nvls-without-fabric" in {f["id"] for f in document["findings"]}


@pytest.mark.parametrize(
    ("name", "text", "pattern"),
    [
        ("gone.sh", None, r"gone\.sh does not exist"),
        ("notes.txt", "buy milk\n", r"notes\.txt: .*no SGLang server"),
        ("r.yaml", "schema: triage.recipe/1\nname: [\n", r"r\.yaml:"),
    ],
)
def test_a_file_that_is_neither_is_said_in_a_sentence(
    triage: Run, tmp_path: Path, name: str, text: str | None, pattern: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    is_an_error(triage("doctor", name), 2, pattern)


def test_it_takes_less_than_two_seconds(triage: Run, faulty: FakeGpus) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    triage("doctor")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 2, "seconds of the processor; a busy machine takes longer by the clock"


def recipe(tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text(ENGINE)
    (tmp_path / "r.yaml").write_text(RECIPE.replace("PYTHON", sys.executable))


def facts(folder: Path) -> dict[str, Any]:
    document = json.loads((folder / "session.json").read_text())
    assert list(schema("session").iter_errors(document)) == []
    assert isinstance(document, dict)
    return document


def test_no_flags_are_searched_for_on_faulty_hardware(
    triage: Run, tmp_path: Path, faulty: FakeGpus
) -> None:
    recipe(tmp_path)
    done = triage("bisect", "r.yaml", "--session", "s")
    assert done.returncode == 4
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert "doctor: error: GPU 3 has 2 uncorrected memory errors. (ecc)" in lines
    assert lines[-2].startswith("error: no flags are searched for while the machine is at fault")
    assert lines[-1] == "  try: nvidia-smi -i 3 --gpu-reset"
    assert list((tmp_path / "s/trials").iterdir()) == [], "nothing was launched"
    kept = facts(tmp_path / "s")
    assert kept["machine"]["driver"] == "580.95.05"
    assert [f["id"] for f in kept["findings"] if f["severity"] == "error"] == ["ecc"]


def test_cuda_that_does_not_start_is_no_work_for_a_search(
    triage: Run, tmp_path: Path, faulty: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe(tmp_path)
    faulty.set("all.numa=0")
    monkeypatch.setenv("FAKE_CUDA_INIT", "802")
    done = triage("bisect", "r.yaml", "--session", "s")
    assert done.returncode == 4
    assert "doctor: error: CUDA does not start. (cuda-start)" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("  try: systemctl restart nvidia-fabricmanager")


def test_an_engine_on_the_cpu_is_searched_whatever_the_gpus_are(
    triage: Run, tmp_path: Path, faulty: FakeGpus
) -> None:
    recipe(tmp_path)
    text = (tmp_path / "r.yaml").read_text().replace("engine.py]", "engine.py, sglang]")
    (tmp_path / "r.yaml").write_text(text.replace("tp-size: 8", "tp-size: 2, device: cpu"))
    done = triage("bisect", "r.yaml", "--session", "s")
    assert done.returncode in (10, 11), done.stderr
    assert "(ecc)" not in done.stderr


def test_the_same_command_searches_once_the_machine_is_mended(
    triage: Run, tmp_path: Path, faulty: FakeGpus
) -> None:
    recipe(tmp_path)
    assert triage("bisect", "r.yaml", "--session", "s").returncode == 4
    faulty.set("all.numa=0")
    done = triage("bisect", "r.yaml", "--session", "s")
    assert done.returncode in (10, 11), done.stderr
    assert "doctor: error" not in done.stderr
    assert (tmp_path / "s/trials/001/server.log").exists()


def test_no_doctor_searches_all_the_same(triage: Run, tmp_path: Path, faulty: FakeGpus) -> None:
    recipe(tmp_path)
    done = triage("bisect", "r.yaml", "--session", "s", "--no-doctor")
    assert done.returncode in (10, 11), done.stderr
    assert "doctor:" not in done.stderr
    assert "machine" not in facts(tmp_path / "s")


def test_a_simulated_search_notes_the_machine_and_does_not_judge_it(
    triage: Run, tmp_path: Path, faulty: FakeGpus
) -> None:
    shutil.copy(ROOT / "recipes/kimi-k2.6-b300.yaml", tmp_path / "r.yaml")
    words = ("--engine", "replay", "--landscape", LANDSCAPE, "--speed", "100000", "--trials", "1")
    done = triage("bisect", "r.yaml", *words, "--session", "s")
    assert done.returncode in (0, 10, 11, 12, 13), done.stderr
    assert "doctor:" not in done.stderr
    kept = facts(tmp_path / "s")
    assert kept["machine"]["gpus"][3]["free_mib"] == 274400
    assert kept["findings"] == []
    assert os.path.lexists(tmp_path / "s/trials/001/server.log")


def test_a_single_launch_is_told_of_faulty_hardware_and_made(
    triage: Run, tmp_path: Path, faulty: FakeGpus
) -> None:
    (tmp_path / "engine.py").write_text(ENGINE)
    done = triage("run", "--", sys.executable, "engine.py", "--model-path", "/m")
    assert done.returncode in (10, 11, 13), done.stderr
    first = done.stderr.splitlines()[0]
    assert first == "doctor: error: GPU 3 has 2 uncorrected memory errors. (ecc)"
    assert Path(done.stderr.rsplit("log: ", 1)[1].splitlines()[0]).exists()

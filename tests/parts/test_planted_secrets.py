"""Secrets planted wherever a launch can have them from are in no file of a session and in no output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from parts import place, require

from triage.core.launch import Container

pytestmark = pytest.mark.parts
ROOT = Path(__file__).parents[2]
ENGINE = Path(__file__).with_name("torture_engine.py")
KINDS = ("process", "systemd", "container", "slurm")
PLANTED = {
    "recipe env": "planted-in-the-recipe-1",
    "shell": "planted-in-the-shell-2",
    "argv": "planted-in-the-flags-3",
    "container": "planted-in-the-words-4",
    "unit": "planted-in-the-unit-5",
    "unit file": "planted-in-its-file-6",
    "sbatch": "planted-in-the-options-7",
    "env file": "planted-in-an-env-file-8",
}
# Which of them the server gets, and tells in its log and in /server_info.
GETS = {
    "process": {"recipe env", "shell", "argv"},
    "systemd": {"recipe env", "argv", "unit", "unit file"},
    "container": {"recipe env", "argv", "container", "env file"},
    "slurm": {"recipe env", "argv", "sbatch", "shell"},
}


def recipe(folder: Path, kind: str) -> Path:
    """A baseline that starts and one flag at which the server fails."""
    (folder / "unit.env").write_text(f"SERVICE_TOKEN={PLANTED['unit file']}\n")
    (folder / "more.env").write_text(f"WANDB_API_KEY={PLANTED['env file']}\n")
    (folder / "server.service").write_text(
        f"[Service]\nEnvironment=DB_PASSWORD={PLANTED['unit']}\n"
        f"EnvironmentFile={folder}/unit.env\nExecStart=/bin/false\n"
    )
    where = place(kind)
    words = list(where.run) if isinstance(where, Container) else []
    words[-1:-1] = ["--env", f"AWS_SECRET_ACCESS_KEY={PLANTED['container']}"] if words else []
    words[-1:-1] = ["--env-file", f"{folder}/more.env"] if words else []
    path = folder / "recipe.yaml"
    path.write_text(f"""schema: triage.recipe/1
name: planted
launch:
  target: {kind}
  unit: server.service
  container: {json.dumps(words)}
  sbatch: ["--export=ALL,JOB_TOKEN={PLANTED["sbatch"]}"]
  command: [{json.dumps(sys.executable)}, {json.dumps(str(ENGINE))}]
  env: {{HF_TOKEN: {PLANTED["recipe env"]}, TORTURE_TELLS: "1"}}
  patience: {{silent: 10s, total: 60s}}
baseline: {{flags: {{model-path: m, api-key: {PLANTED["argv"]}}}}}
wanted:
  - {{flag: misbehave, value: hang-in-a-collective}}
  - {{flag: misbehave-not, value: "1"}}
goal: all
""")
    return path


def test_no_secret_of_an_inspected_container_is_kept(tmp_path: Path) -> None:
    require("container")
    where = place("container")
    assert isinstance(where, Container)
    at = where.run.index("run")
    name = f"triage-planted-{os.getpid()}"
    server = ["python", "-m", "sglang.launch_server", "--model-path", "m", "--api-key"]
    words = [*where.run[:at], "create", "--name", name, *where.run[at + 1 : -1]]
    words += ["--env", f"AWS_SECRET_ACCESS_KEY={PLANTED['container']}", where.run[-1], *server]
    subprocess.run([*words, PLANTED["argv"]], check=True, capture_output=True)
    try:
        seen = subprocess.run(
            [*where.run[:at], "inspect", name], check=True, capture_output=True, text=True
        ).stdout
    finally:
        subprocess.run([*where.run[:at], "rm", "--force", name], check=True, capture_output=True)
    assert PLANTED["container"] in seen
    (tmp_path / "good.json").write_text(seen)
    (tmp_path / "bad.sh").write_text(" ".join([*server[:-1], "--tp-size 2"]) + "\n")
    session = tmp_path / "session"
    shown = ""
    for asked in (
        ["config", "good.json"],
        ["config", "good.json", "--json"],
        ["bisect", "--good", "good.json", "--bad", "bad.sh", "--session", str(session),
         "--target", "container", "--no-doctor", "--trials", "1"],
    ):  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "triage", *asked], capture_output=True, text=True, check=False,
            cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=120,
        )  # fmt: skip
        shown += done.stdout + done.stderr
    assert "Traceback" not in shown
    assert (session / "session.json").exists(), shown[-2000:]
    files = list(session.rglob("*"))
    for secret in (PLANTED["container"], PLANTED["argv"]):
        assert secret not in shown
        assert not [p for p in files if p.is_file() and secret.encode() in p.read_bytes()]


@pytest.mark.parametrize("kind", KINDS)
def test_no_planted_secret_is_in_a_file_or_an_output(kind: str, tmp_path: Path) -> None:
    require(kind)
    session = tmp_path / "session"
    file = recipe(tmp_path, kind)
    env = os.environ | {"PYTHONPATH": str(ROOT), "OPENAI_API_KEY": PLANTED["shell"]}
    env |= {"PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1"}
    outputs = {}

    def triage(*words: str, code: set[int] | None = None) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "triage", *words],
            capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path, env=env,
        )  # fmt: skip
        outputs[words] = done.stdout + done.stderr
        assert done.returncode in (code or {0}), outputs[words][-2000:]

    triage("bisect", str(file), "--session", str(session), "--rungs", "full", "--no-doctor",
           code={0, 12})  # fmt: skip
    log = session / "trials" / "001" / "server.log"
    text = log.read_text(errors="replace")
    assert "started as" in text, "the server told everything it knows"
    assert "*" * len(PLANTED["argv"]) in text
    for what in GETS[kind]:
        assert "*" * len(PLANTED[what]) in text, f"the server did not get what is in the {what}"
    triage("recommend", str(session))
    triage("recommend", str(session), "--json")
    triage("confirm", str(session), code={0, 12})
    triage("runbook", str(session))
    triage("plan", str(session), "--json")
    triage("classify", str(log), "--json", code={0, 3, 10, 11, 13})
    triage("issue", str(session), "--attach", str(tmp_path / "attached"), code={0, 3})
    triage("diff", f"{session}/trials/001/server.log", f"{session}/trials/002/server.log",
           code={0, 2, 3, 14})  # fmt: skip
    files = [p for root in (session, tmp_path / "attached") for p in root.rglob("*") if p.is_file()]
    leaks = [
        f"{what} in {path.relative_to(tmp_path)}"
        for path in files
        for what, secret in PLANTED.items()
        if secret.encode() in path.read_bytes()
    ]
    leaks += [
        f"{what} in the output of {words[0]}"
        for words, output in outputs.items()
        for what, secret in PLANTED.items()
        if secret in output
    ]
    assert leaks == []

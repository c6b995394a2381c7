"""A secret in any input reaches no file of the session and neither stream, and launches still work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run, is_an_error

from triage.replay.landscape import Ending, write_landscape

pytestmark = pytest.mark.real

SECRETS = (
    "plainkeyvalue1", "tok-from-script-2", "s3cr3tpassword3", "url-password-4", "apikeyvalue5", "nested6secret",
)  # fmt: skip


def landscape(folder: Path) -> Path:
    starts, fails = (
        Ending(ends="starts"),
        Ending(ends="exception", phase="weight-load", exception="ValueError", message="no"),
    )
    keys = ("flag-a", "env:EXTRA_TOKEN")
    write_landscape(
        folder / "l.yaml",
        {frozenset(): starts, frozenset(keys): fails, frozenset({keys[0]}): fails, frozenset({keys[1]}): starts},
    )  # fmt: skip
    return folder / "l.yaml"


def commands(folder: Path) -> tuple[Path, Path]:
    """A good and a bad script, full of secrets."""
    common = (
        "export OPENAI_API_KEY=plainkeyvalue1\nexport DB_PASSWORD='s3cr3tpassword3'\n"
        "export AWS_SECRET_ACCESS_KEY=nested6secret\nexport PROXY=http://joe:url-password-4@127.0.0.1:1\n"
    )
    good, bad = folder / "good.sh", folder / "bad.sh"
    good.write_text(common + "python -m sglang.launch_server --model-path /m\n")
    bad.write_text(
        common + "export EXTRA_TOKEN=1\n# once EXTRA_TOKEN=tok-from-script-2\n"
        "python -m sglang.launch_server --model-path /m --flag-a\n"
    )
    return good, bad


def leaks(folder: Path, *texts: str) -> list[str]:
    found = [
        f"{s} in {p}"
        for p in folder.rglob("*")
        if p.is_file()
        for s in SECRETS
        if s.encode() in p.read_bytes()
    ]
    return found + [f"{s} in the output" for s in SECRETS for text in texts if s in text]


def test_no_secret_of_a_script_is_stored_or_shown(triage: Run, tmp_path: Path) -> None:
    good, bad = commands(tmp_path)
    played = ("--engine", "replay", "--landscape", landscape(tmp_path), "--speed", "1000")
    done = triage("bisect", "--good", good, "--bad", bad, *played, "--session", "s")
    assert done.returncode == 0, done.stderr
    confirmed = triage("confirm", "s")
    assert confirmed.returncode == 0, confirmed.stderr
    page = triage("runbook", "s")
    assert "works: it was launched" in (tmp_path / "s/runbook.md").read_text()
    shown = [
        triage(*words).stdout
        for words in (
            ["recommend", "s"],
            ["recommend", "s", "--json"],
            ["config", bad, "--json"],
            ["config", bad],
            ["bisect", "--session", "s", "--dry-run"],
        )
    ]
    assert (
        leaks(
            tmp_path / "s",
            done.stdout,
            done.stderr,
            confirmed.stdout,
            confirmed.stderr,
            page.stdout,
            *shown,
        )
        == []
    )


def test_a_stored_secret_that_cannot_be_found_again_is_not_launched(
    triage: Run, tmp_path: Path
) -> None:
    good, bad = commands(tmp_path)
    played = ("--engine", "replay", "--landscape", landscape(tmp_path), "--speed", "1000")
    assert triage("bisect", "--good", good, "--bad", bad, *played, "--session", "s").returncode == 0
    good.unlink()
    done = triage("confirm", "s")
    is_an_error(done, 4, r"OPENAI_API_KEY.* was hidden when the session was stored")
    assert not (tmp_path / "s/confirmation").exists()


def test_the_server_gets_the_secret_itself(triage: Run, tmp_path: Path) -> None:
    """What is hidden in the files is still what is launched, also after the session was stored."""
    program = tmp_path / "show.py"
    program.write_text(
        "import os, sys\nopen('seen', 'a').write(os.environ['HF_TOKEN'] + ' ' + ' '.join(sys.argv) + '\\n')\nsys.exit('ValueError: no')\n"
    )
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        "schema: triage.recipe/1\nname: t\nlaunch:\n  command: [python3, show.py]\n  env: {HF_TOKEN: hush-hush}\n"
        "baseline: {flags: {model-path: /m, api-key: apikeyvalue5}}\nwanted:\n  - {flag: enable-metrics}\n"
    )
    done = triage("bisect", recipe, "--session", "s")
    assert done.returncode in {10, 11, 13}, done.stderr
    first = (tmp_path / "seen").read_text().splitlines()[0]
    assert first.startswith("hush-hush show.py")
    assert "--api-key apikeyvalue5" in first
    assert leaks(tmp_path / "s", done.stdout, done.stderr) == []
    assert "hush-hush" not in "".join(p.read_text() for p in (tmp_path / "s").glob("*.*"))


def test_run_hides_the_key_that_it_was_given(triage: Run, tmp_path: Path) -> None:
    done = triage(
        "run",
        "--session",
        "s",
        "--json",
        "--",
        "python3",
        "-c",
        "print('ValueError: no')",
        "--model-path",
        "/m",
        "--api-key",
        "apikeyvalue5",
    )
    assert json.loads(done.stdout)["schema"] == "triage.diagnosis/1"
    assert leaks(tmp_path / "s", done.stdout, done.stderr) == []


def test_a_secret_in_the_command_is_launched_and_not_stored(triage: Run, tmp_path: Path) -> None:
    program = tmp_path / "show.py"
    program.write_text(
        "import os, sys\nopen('seen', 'a').write(os.environ['HF_TOKEN'] + ' ' + ' '.join(sys.argv) + '\\n')\nsys.exit('ValueError: no')\n"
    )
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        "schema: triage.recipe/1\nname: t\nlaunch:\n"
        "  command: [env, HF_TOKEN=plainkeyvalue1, python3, show.py, --admin-api-key, apikeyvalue5]\n"
        "baseline: {flags: {model-path: /m}}\nwanted:\n  - {flag: enable-metrics}\n"
    )
    triage("bisect", recipe, "--session", "s")
    assert (
        (tmp_path / "seen")
        .read_text()
        .startswith("plainkeyvalue1 show.py --admin-api-key apikeyvalue5")
    )
    assert leaks(tmp_path / "s") == []


def test_the_environment_of_the_good_command_stays_beside_a_config_file(
    triage: Run, tmp_path: Path
) -> None:
    (tmp_path / "good.service").write_text(
        "[Service]\nEnvironment=NCCL_DEBUG=INFO\nExecStart=/usr/bin/python3 -m sglang.launch_server --model-path /m\n"
    )
    (tmp_path / "bad.yaml").write_text("model-path: /m\nenable-metrics: true\n")
    done = triage("bisect", "--good", "good.service", "--bad", "bad.yaml", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "NCCL_DEBUG" not in done.stdout
    assert "enable-metrics" in done.stdout

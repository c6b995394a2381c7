"""What README.md and ARCHITECTURE.md promise about the command line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from triage.cli import COMMANDS, EPILOG
from triage.errors import (
    HostError,
    Inconclusive,
    NotFoundWorking,
    NothingError,
    TriageError,
    UsageError,
)

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def triage(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "triage", *words],
        capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_exit_codes_of_errors_are_those_documented() -> None:
    codes = {
        TriageError: 1, UsageError: 2, NothingError: 3, HostError: 4,
        NotFoundWorking: 12, Inconclusive: 13,
    }  # fmt: skip
    assert {kind: kind.exit_code for kind in codes} == codes
    documented = {int(n) for n in re.findall(r"^\| (\d+) \|", README, re.M)}
    assert documented == {0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 130}
    assert documented == {int(n) for n in re.findall(r"\b(\d+)\b", EPILOG)}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_within_80_columns(name: str) -> None:
    shown = triage(name, "--help")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(f"Usage: triage {name}")
    assert max(len(line) for line in shown.stdout.splitlines()) <= 80


def test_commands_in_the_readme_exist_with_the_options_shown() -> None:
    shown = re.findall(r"^(?:\$ )?triage ([a-z]+)(.*)$", README, re.M)
    assert shown
    for name, rest in shown:
        assert name in COMMANDS
        help_text = triage(name, "--help").stdout
        for option in re.findall(r"(--[a-z][\w-]+)", rest.split(" -- ")[0]):
            assert option in help_text, f"triage {name} has no {option}"


def test_help_imports_no_command() -> None:
    code = (
        "import sys\nfrom triage.cli import run\nrun(['--help'])\n"
        "heavy = {'yaml', 'pydantic', 'rich', 'jinja2', 'psutil', 'torch', 'pynvml'}\n"
        "sys.exit(','.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_console_script_does_not_cost_more_than_the_module() -> None:
    # The script that pip 23 writes imports `re` on its own; a newer pip's does not.
    script = Path(sys.executable).parent / "triage"
    assert script.exists()
    assert "import re" not in script.read_text().splitlines()


def test_unknown_command_suggests_the_nearest() -> None:
    done = triage("clasify")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "error: there is no command 'clasify'\n  try: triage classify --help\n"

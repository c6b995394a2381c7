"""Which Python runs the engine is told by the words of the command, or not at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from triage.launch.engine_python import engine_python, engine_version


@pytest.mark.parametrize(
    "words",
    [
        [sys.executable, "-m", "sglang.launch_server"],
        [sys.executable, "-u", "-X", "dev", "-m", "sglang.launch_server"],
        ["numactl", "-N", "0", sys.executable, "-m", "sglang.launch_server"],
        ["env", "A=python3", sys.executable, "-m", "sglang", "serve"],
    ],
)
def test_a_module_run_by_a_python_is_found_behind_wrappers(words: list[str]) -> None:
    assert engine_python(words) == sys.executable


@pytest.mark.parametrize(
    "words",
    [
        ["./serve.sh"],
        ["bash", "-c", "python -m sglang.launch_server"],
        [sys.executable, "-m", "triage.replay", "--"],
        [sys.executable, "serve.py"],
        ["/nonexistent/python", "-m", "sglang.launch_server"],
        ["sglang", "serve"],
        [],
    ],
)
def test_what_could_start_any_python_is_not_guessed(words: list[str]) -> None:
    assert engine_python(words, path="/nonexistent") is None


def test_a_relative_python_is_looked_up_in_the_folder_of_the_launch(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    words = ["bin/python", "-m", "sglang.launch_server"]
    assert engine_python(words, tmp_path) == str(tmp_path / "bin/python"), "the link is kept"
    assert engine_python(words, tmp_path / "bin") is None


@pytest.mark.parametrize(
    "head",
    ["#!{python}\n", "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n"],
)
def test_a_console_script_names_its_interpreter(tmp_path: Path, head: str) -> None:
    script = tmp_path / "sglang"
    script.write_text(head.format(python=sys.executable) + "import re\n")
    script.chmod(0o755)
    assert engine_python(["sglang", "serve"], path=str(tmp_path)) == sys.executable
    assert engine_python([str(script), "serve"]) == sys.executable
    assert engine_python([str(script), "generate"]) is None


def test_the_version_is_that_of_the_installed_package(tmp_path: Path) -> None:
    packages = tmp_path / "lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    assert engine_version(str(tmp_path / "bin/python")) == ""
    (packages / "sglang-0.5.24.post1.dist-info").mkdir()
    assert engine_version(str(tmp_path / "bin/python")) == "0.5.24.post1"
    (packages / "sglang-0.5.23.dist-info").mkdir()
    assert engine_version(str(tmp_path / "bin/python")) == "", "two: nobody knows which one it is"

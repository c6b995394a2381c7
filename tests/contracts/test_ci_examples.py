"""The commands of docs/ci.md and of the example workflow can be typed as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from triage.cli import LazyGroup

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / "docs/examples/classify-launch.yml"
PAGE = ROOT / "docs/ci.md"


def commands(script: str) -> list[list[str]]:
    """The words of each triage command in a shell script, without redirections."""
    lines = script.replace("\\\n", " ").splitlines()
    typed = [re.split(r" >|\s\|", line)[0] for line in lines if line.strip().startswith("triage ")]
    return [shlex.split(line, comments=True)[1:] for line in typed]


def parse(words: list[str]) -> None:
    """Parse a command line of triage as triage does; an unknown command or option raises."""
    at: click.Command = LazyGroup(name="triage", commands={})
    while isinstance(at, click.Group) and words:
        name, words = words[0], words[1:]
        found = at.get_command(click.Context(at), name)
        assert found is not None, f"there is no command {name}"
        at = found
    at.make_context(at.name, words)


def workflow() -> dict[Any, Any]:
    made = yaml.safe_load(WORKFLOW.read_text())
    assert isinstance(made, dict)
    return made


def test_the_workflow_has_what_github_asks_for() -> None:
    made = workflow()
    assert made[True]  # `on`, which YAML 1.1 reads as a truth value
    assert made["permissions"]["security-events"] == "write"
    for job in made["jobs"].values():
        assert job["runs-on"]
        # Only steps know hashFiles; a job that asks for it is refused.
        assert "hashFiles" not in str(job.get("if", ""))
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), step
            assert re.fullmatch(r"[\w-]+/[\w./-]+@v\d+", step.get("uses", "a/b@v1"))


def test_what_the_workflow_uploads_is_what_triage_writes() -> None:
    steps = workflow()["jobs"]["launch"]["steps"]
    (classify,) = [step["run"] for step in steps if "triage classify" in step.get("run", "")]
    (upload,) = [step for step in steps if "upload-sarif" in step.get("uses", "")]
    words = shlex.split(classify)
    assert words[words.index("--sarif") + 1] == upload["with"]["sarif_file"]
    assert "--github" in words


@pytest.mark.parametrize(
    "words",
    [
        words
        for job in workflow()["jobs"].values()
        for step in job["steps"]
        for words in commands(step.get("run", ""))
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_every_command_of_the_workflow_exists(words: list[str]) -> None:
    parse(words)


@pytest.mark.parametrize(
    "words",
    [
        w
        for block in re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.S)
        for w in commands(block)
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_every_command_of_the_page_exists(words: list[str]) -> None:
    parse(words)


def test_a_command_that_does_not_exist_is_found() -> None:
    with pytest.raises(click.UsageError):
        parse(["classify", "--sariff", "x", "a.log"])
    with pytest.raises(AssertionError, match="there is no command clasify"):
        parse(["clasify"])
    assert commands("x\ntriage check \\\n  cases > out") == [["check", "cases"]]

"""Every command that is proposed from a log of this release is one that the real engine parses.

Not: whether it starts (test_mended_failures.py launches some).
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from triage.core.config import Config, argv
from triage.knowledge import load_cases
from triage.session.logs import classify, flag_table
from triage.session.proposals import proposals_of

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".sglang/bin/python"
RELEASE = "0.5.23"
pytestmark = pytest.mark.e2e

# Reads argument vectors, one a line as JSON; prints for each why argparse refuses it, or "".
PARSE = """
import argparse, contextlib, io, json, sys
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
for line in sys.stdin:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parser.parse_args(json.loads(line))
        print(json.dumps(""))
    except SystemExit:
        print(json.dumps(said.getvalue().strip().splitlines()[-1]))
"""


def own_flags(config: Config) -> bool:
    """Whether the arguments are the release's: a fork's would be refused as they are."""
    return all(flag.name in flag_table().specs for flag in config.flags)


def test_the_real_engine_parses_every_proposed_command() -> None:
    proposed: list[tuple[str, list[str]]] = []
    for case in load_cases(ROOT / "fixtures/cases"):
        if case.version != RELEASE or case.expect["outcome"] == "healthy":
            continue
        diagnosis = classify(str(case.log))
        found = proposals_of(diagnosis)
        if diagnosis.engine != "sglang" or found.config is None or not own_flags(found.config):
            continue
        for option in found.launchable:
            assert option.config is not None
            proposed.append((f"{case.name}: {option.say}", list(argv(option.config))))
    assert len(proposed) > 150
    lines = "".join(f"{json.dumps(words)}\n" for _, words in proposed)
    done = subprocess.run(
        [PYTHON, "-c", PARSE], input=lines, capture_output=True, text=True, check=True, timeout=300
    )
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('"')]
    assert len(answers) == len(proposed)
    refused = {what: why for (what, _), why in zip(proposed, answers, strict=True) if why}
    assert refused == {}

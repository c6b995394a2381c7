"""The command line as a user meets it: a process, its two streams, its exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Run, within
from hypothesis import settings

# Real launches and a folder that fills up; a stand-in for the driver's library; the founding case.
pytest_plugins = ["launch_bench", "fake_gpus", "founding_case"]

ROOT = Path(__file__).parents[1]
# A busy machine is no failure: an example may take as long as it does. And what fails, fails in
# each run: new examples are for those who look for them (TRIAGE_EXPLORE=1).
settings.register_profile(
    "triage",
    settings.get_profile(settings.get_current_profile_name()),
    deadline=None,
    derandomize="TRIAGE_EXPLORE" not in os.environ,
)
settings.load_profile("triage")

# A shell ignores Ctrl-C in what it starts in the background, nohup a lost terminal, and so do the
# children of that: the tests of these signals want them as a terminal has them.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first: two workers take a file each, and the last one should be short."""
    items.sort(key=lambda item: item.get_closest_marker("real") is None)


# These only read and print. Within this process they take a tenth of the time of a process.
WITHIN = frozenset(
    ("advise", "causes", "check", "classify", "cluster", "config", "diff", "explain", "issue")
) | {"plan", "recommend", "runbook"}


@pytest.fixture
def triage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run triage in an empty folder; the answer's text, the talk, the code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def run(
        *words: str | Path, stdin: bytes = b"", timeout: float = 120, process: bool = False
    ) -> subprocess.CompletedProcess[str]:
        typed = list(map(str, words))
        # Cause files of a folder are read once a process.
        own = "--knowledge" in typed or "TRIAGE_KNOWLEDGE" in os.environ
        if process or own or not typed or typed[0] not in WITHIN:
            done = subprocess.run(
                [sys.executable, "-m", "triage", *typed],
                cwd=tmp_path, input=stdin, capture_output=True, check=False, timeout=timeout,
            )  # fmt: skip
        else:
            done = within(typed, stdin)
        shown = subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )
        assert "Traceback (most recent call last)" not in shown.stderr, shown.stderr
        return shown

    return run

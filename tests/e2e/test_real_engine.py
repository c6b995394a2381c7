"""The whole way against real SGLang on the CPU: bisect, confirm, runbook, and nothing left.

Run by `make e2e`, which installs the engine and makes the models first.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from traces import Descendants, alive, children_of

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.e2e

# recipe -> failing pair, cause, and what the proposal keeps: the heavier of the two
INTERACTIONS = {
    "tiny-cpu-page-chunk": (
        {"page-size", "chunked-prefill-size"}, "args-not-a-multiple", "page-size",
    ),
    "tiny-cpu-tokenizer-batching": (
        {"enable-dynamic-batch-tokenizer", "enable-tokenizer-batch-encode"},
        "args-mutually-exclusive", "enable-tokenizer-batch-encode",
    ),
    "tiny-cpu-layers-pipeline": (
        {"json-model-override-args", "pp-size"}, "pp-more-stages-than-layers", "pp-size",
    ),
    "tiny-cpu-pool-page": (
        {"max-total-tokens", "page-size"}, "warmup-never-scheduled", "page-size",
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No process, listening port or shared-memory file of a launch outlives its test."""
    with Descendants() as descendants:
        yield
    assert descendants.count > 5, "the launches were seen"
    assert descendants.left() == []


def triage(*words: str | Path, code: int = 0) -> str:
    """The answer of one command; its talk goes to the terminal as it comes."""
    done = subprocess.run(
        [sys.executable, "-m", "triage", *map(str, words)],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False, timeout=560,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode == code, done.stdout
    return done.stdout


def journal(session: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (session / "journal.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", INTERACTIONS)
def test_an_interaction_of_the_real_engine(name: str, tmp_path: Path) -> None:
    pair, cause, kept = INTERACTIONS[name]
    session = tmp_path / "s"
    found = json.loads(
        triage("bisect", ROOT / f"recipes/{name}.yaml", "--session", session, "--json")
    )

    assert [(set(s["items"]), s["cause"], s["minimal"]) for s in found["sets"]] == [
        (pair, cause, True)
    ]
    assert found["reason"] == "found"
    assert found["simulated"] is False
    assert {choice["flag"] for choice in found["drop"]} == pair - {kept}
    trials = journal(session)
    assert {t["provenance"] for t in trials if t["rung"] == "full"} == {"launched"}
    assert {t["provenance"] for t in trials} <= {"launched", "resolved"}
    assert sorted(len(t["items"]) for t in trials if t["seen"] == "starts") == [0, 1, 1]
    launches = [t for t in trials if t["rung"] == "full"]
    failure = next(t for t in trials if t["seen"] == "fails")
    if cause.startswith("args-"):  # the engine refuses it: nothing is launched for that
        assert (len(launches), failure["rung"], failure["early"]) == (3, "resolution", True)
        assert found["spent"]["saved_launches"] == 1
        assert failure["seconds"] < 5
    else:
        assert (len(launches), failure["rung"]) == (4, "full")
    assert found["spent"]["launches"] == len(launches)

    confirmed = json.loads(triage("confirm", session, "--json"))
    assert confirmed["confirmed"] is True
    assert confirmed["agree"] is True
    assert all(e["answers"][0] == e["answers"][1] != "" for e in confirmed["exchanges"])

    page = Path(triage("runbook", session).split("\n")[0]).read_text()
    assert "The proposed configuration works" in page
    assert cause in page
    assert "simulated" not in page.lower()


def test_kill_9_leaves_nothing_and_the_same_command_goes_on(tmp_path: Path) -> None:
    session = tmp_path / "s"
    words = [
        "bisect",
        str(ROOT / "recipes/tiny-cpu-tokenizer-batching.yaml"),
        "--session",
        str(session),
    ]
    first = subprocess.Popen(
        [sys.executable, "-m", "triage", *words], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    log = session / "trials/005/server.log"  # three answers without a launch, and the baseline
    deadline = time.monotonic() + 180
    while not (log.exists() and re.search(rb"server_args=", log.read_bytes())):
        assert time.monotonic() < deadline
        assert first.poll() is None
        time.sleep(0.2)
    ours = children_of(first.pid)
    assert len(ours) >= 2
    first.send_signal(signal.SIGKILL)
    first.wait()
    time.sleep(1.0)
    assert alive(ours) == []

    before = journal(session)
    assert [t["rung"] for t in before] == ["resolution"] * 3 + ["full"]
    found = json.loads(triage(*words, "--json"))
    assert journal(session)[:4] == before
    assert found["reason"] == "found"
    assert len(journal(session)) == 6


def test_run_names_the_cause_at_the_fatal_line(tmp_path: Path) -> None:
    """A scheduler that dies late: one launch, classified as soon as the line is there."""
    answer = json.loads(
        triage(
            "run", "--session", tmp_path / "s", "--json", "--",
            ".sglang/bin/python", "-m", "sglang.launch_server", "--model-path", ".models/truncated",
            "--device", "cpu", "--attention-backend", "torch_native", "--mem-fraction-static", "0.1",
            "--model-impl", "transformers", "--max-total-tokens", "4096", "--disable-overlap-schedule",
            code=10,
        )
    )  # fmt: skip
    assert answer["outcome"] == "failed"
    assert answer["cause"] == "checkpoint-corrupt"
    assert answer["root"]["text"].endswith("file not fully covered")

"""A confounded trial is labelled: in the journal, in text and JSON, in the runbook; and pinned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Run

from triage.core.config import Config, SetFlag
from triage.core.launch import Capture, Crashed
from triage.core.trials import Entry, Item, Problem, Seen, Trial
from triage.session.logs import classify
from triage.session.trial import TrialResult, entry_of

PAIRS = Path(__file__).parents[2] / "fixtures/pairs"
FLAGS: list[dict[str, Any]] = [
    {"flag": "model-path", "neutral": True},
    {"flag": "host", "default": "127.0.0.1", "neutral": True},
    {"flag": "port", "kind": "int", "default": 30000, "neutral": True},
    {"flag": "tp-size", "kind": "int", "default": 1},
    {"flag": "ep-size", "kind": "int", "default": 1, "neutral": True},
    {"flag": "moe-a2a-backend", "default": "none"},
    {"flag": "enable-nccl-nvls", "kind": "switch"},
]
FAILS = {
    "ends": "exception", "phase": "weight-load", "exception": "ValueError", "message": "no experts",
}  # fmt: skip
RECIPE = """\
schema: triage.recipe/1
name: planted
engine: replay
landscape: l.yaml
speed: 2000
baseline: {flags: {model-path: /m, tp-size: 8}}
wanted:
  - {flag: moe-a2a-backend, value: deepep}
  - {flag: enable-nccl-nvls}
"""


def plant(folder: Path) -> None:
    """A landscape whose engine moves ep-size with the backend, and fails then."""
    items = {"moe-a2a-backend": "deepep", "enable-nccl-nvls": True}
    entries = [
        {"when": when, "provenance": "assumed", "source": "made up for this test", **ending}
        for when, ending in (
            ([], {"ends": "starts"}),
            (["enable-nccl-nvls"], {"ends": "starts"}),
            (["moe-a2a-backend"], FAILS),
            (["moe-a2a-backend", "enable-nccl-nvls"], FAILS),
        )
    ]
    landscape = {
        "schema": "triage.landscape/1",
        "name": "planted",
        "flags": FLAGS,
        "fixed": {"tp-size": 8},
        "items": items,
        "seconds": {"process-spawn": 1, "weight-load": 1},
        "overrides": [{"when": ["moe-a2a-backend"], "sets": {"ep-size": 8}}],
        "entries": entries,
    }
    (folder / "l.yaml").write_text(json.dumps(landscape))


@pytest.mark.real
def test_a_planted_override_is_named_everywhere_and_can_be_pinned(
    triage: Run, tmp_path: Path
) -> None:
    plant(tmp_path)
    (tmp_path / "r.yaml").write_text(RECIPE)
    done = triage("bisect", "--no-doctor", "r.yaml", "--session", "s")
    assert done.returncode == 0, done.stderr
    journal = [json.loads(x) for x in (tmp_path / "s/journal.jsonl").read_text().splitlines()]
    moved = {e["number"]: e["confounded"] for e in journal}
    assert moved == {
        e["number"]: ["ep-size"] if "moe-a2a-backend" in e["items"] else [] for e in journal
    }
    alone = next(e for e in journal if e["items"] == ["moe-a2a-backend"])
    assert alone["moved"][0] | {"against": 0} == {
        "name": "ep-size", "before": None, "after": "8", "against": 0, "with": ["moe-a2a-backend"],
    }  # fmt: skip
    said = "confounded: ep-size its default -> 8 with moe-a2a-backend"
    assert said in done.stderr
    assert "is confounded: ep-size" in " ".join(done.stdout.split())
    claims = json.loads(triage("recommend", "--json", "s").stdout)["claim"]
    assert any("pin: [{flag: ep-size, value: 8}]" in claim["say"] for claim in claims)
    assert triage("runbook", "s").returncode == 0
    book = (tmp_path / "s/runbook.md").read_text()
    assert "(confounded)" in book
    assert "pin: [{flag: ep-size, value: 8}]" in book
    shown = triage("diff", "s:1", f"s:{alone['number']}").stdout
    assert "moved with moe-a2a-backend\n  ep-size " in shown
    # Pinned, the baseline has it too, and nothing moves any more.
    (tmp_path / "pinned.yaml").write_text(RECIPE + "pin: [{flag: ep-size, value: 8}]\n")
    pinned_run = triage("bisect", "--no-doctor", "pinned.yaml", "--session", "p")
    assert pinned_run.returncode == 0, pinned_run.stderr
    pinned = [json.loads(x) for x in (tmp_path / "p/journal.jsonl").read_text().splitlines()]
    assert [e["confounded"] for e in pinned] == [[]] * len(pinned)
    assert {e["config"]["flags"]["ep-size"] for e in pinned} == {8}


def entry(number: int, log: str, items: dict[str, str], journal: list[Entry]) -> Entry:
    """The journal entry of a real launch whose log was recorded."""
    changes = tuple(Item(key=k, change=SetFlag(k, v)) for k, v in items.items())
    problem = Problem(name="real", baseline=Config.of({"model-path": "/m"}), items=changes)
    file = PAIRS / f"{log}.log"
    diagnosis = classify(str(file))
    outcome = Crashed(exit_code=1)
    result = TrialResult(
        capture=Capture(outcome=outcome, seconds=1.0, log=str(file), phase=diagnosis.phase),
        diagnosis=diagnosis,
        seen=Seen.STARTS if diagnosis.outcome == "healthy" else Seen.FAILS,
    )
    trial = Trial(items=frozenset(items), why="recorded")
    return entry_of(number, trial, problem, result, journal)


@pytest.mark.parametrize(
    ("baseline", "log", "items", "names"),
    [
        ("llama", "page-size", {"page-size": "16"}, ()),
        ("llama", "schedule-policy", {"schedule-policy": "lpm"}, ()),
        ("moe-two-ranks", "moe-a2a-backend", {"moe-a2a-backend": "deepep"}, ("ep-size",)),
        ("two-ranks", "attn-dp-size", {"attn-dp-size": "2"},
         ("chunked-prefill-size", "schedule-conservativeness")),
        ("llama", "speculative-ngram", {"speculative-algorithm": "NGRAM"},
         ("max-running-requests",)),
    ],
)  # fmt: skip
def test_real_launches_are_compared_with_their_baseline(
    baseline: str, log: str, items: dict[str, str], names: tuple[str, ...]
) -> None:
    first = entry(1, baseline, {}, [])
    assert first.moved == ()
    second = entry(2, log, items, [first])
    assert second.confounded == names
    assert all(m.by == tuple(items) and m.against == 1 for m in second.moved)

"""`triage probe` as a user meets it, without torch."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from command_line import Run, is_an_error, typed

from triage.core.probes.results import Finding

ROOT = Path(__file__).parents[2]


def stand_in(folder: Path, *events: Mapping[str, object]) -> Path:
    """A Python that prints these events instead of running a probe."""
    path = folder / "engine-python"
    told = "\n".join(f"triage-probe {json.dumps(event)}" for event in events)
    path.write_text(f"#!/bin/sh\ncat <<'EOF'\n{told}\nEOF\n")
    path.chmod(0o755)
    return path


START = {"event": "start", "device": "cuda", "versions": {"torch": "2.9"}}
LOOPBACK = {
    "event": "experiment", "name": "own name", "outcome": "passed",
    "facts": {"addresses": 1, "loopback": True},
}  # fmt: skip


def gloo_log() -> Path:
    return (
        next(iter(sorted((ROOT / "fixtures/cases").glob("gloo-hostname-loopback--*"))))
        / "server.log"
    )


def test_the_list_has_every_probe_within_80_columns(triage: Run) -> None:
    done = triage("probe", "--list")
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    for name in ("mla-absorb-bmm", "graph-capture", "multicast", "allreduce", "moe-kernel"):
        assert name in done.stdout
    assert "self-test" not in done.stdout


def test_outcomes_are_talked_of_as_they_come_and_answered_once(triage: Run) -> None:
    done = triage("probe", "self-test", "--set", 'ways=["pass", "raise"]', "--json")
    assert done.returncode == 0
    shown = json.loads(done.stdout)
    assert shown["schema"] == "triage.probe/1"
    assert shown["meaning"] == ["pass: passed, raise: failed"]
    assert "raise: failed CUBLAS_STATUS_ALLOC_FAILED" in done.stderr


def test_without_torch_it_says_how_to_get_it(triage: Run, tmp_path: Path) -> None:
    gone = {"event": "unavailable", "reason": "torch does not import in /usr/bin/python"}
    python = stand_in(tmp_path, gone)
    done = triage("probe", "graph-capture", "--python", python)
    is_an_error(done, 4, "torch does not import")
    assert done.stderr.endswith(f"  try: {python} -m pip install torch\n")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["grph-capture"], 2, "there is no probe 'grph-capture'"),
        ([], 2, "one of NAME, --list and --for is wanted"),
        (["multicast", "--list"], 2, "one of NAME"),
        (["self-test", "--python", "no-such-python"], 2, "there is no Python 'no-such-python'"),
        (["self-test", "--set", "ways"], 2, "'ways' is no setting"),
        (["mla-absorb-bmm", "--model-config", "none"], 2, "no config.json that can be read"),
    ],
)
def test_what_cannot_be_run_says_what_to_type(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, says: str
) -> None:
    is_an_error(typed(capsys, "probe", *words), code, says)


def test_a_log_without_a_probe_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    log = next(iter(sorted((ROOT / "fixtures/cases").glob("healthy--*")))) / "server.log"
    is_an_error(typed(capsys, "probe", "--for", log), 3, "no probe would tell")


def test_a_probe_revises_the_diagnosis_of_a_log(triage: Run, tmp_path: Path) -> None:
    python = stand_in(tmp_path, START, LOOPBACK, {"event": "end"})
    done = triage("probe", "--for", gloo_log(), "--python", python, "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["cause"] == "gloo-hostname-loopback"
    assert shown["confidence"] == "high"
    ran = [result["probe"] for result in shown["results"]]
    assert ran == ["rendezvous"]
    assert "loopback address" in shown["results"][0]["meaning"][0]
    text = triage("probe", "--for", gloo_log(), "--python", python)
    assert "gloo-hostname-loopback: confidence high after the probes" in text.stdout


def test_a_session_keeps_what_its_probes_found(triage: Run, tmp_path: Path) -> None:
    python = stand_in(tmp_path, START, LOOPBACK, {"event": "end"})
    words = [
        sys.executable,
        "-c",
        f"import sys; sys.stdout.write(open({str(gloo_log())!r}).read()); sys.exit(1)",
    ]
    ended = triage("run", "--session", "s", "--", *words)
    assert ended.returncode == 10, ended.stderr
    done = triage("probe", "--for", "s", "--python", python)
    assert done.returncode == 0, done.stderr
    kept = json.loads((tmp_path / "s/probes/rendezvous.json").read_text())
    assert kept["findings"][0]["effect"] == "supports"
    revised = json.loads((tmp_path / "s/probes/diagnosis.json").read_text())
    assert revised["schema"] == "triage.diagnosis/1"
    assert revised["cause"] == "gloo-hostname-loopback"


def test_products_that_work_alone_move_the_founding_case_away_from_cublas(
    triage: Run, tmp_path: Path
) -> None:
    events = [
        {
            "event": "experiment", "name": f"bf16 {mode} {mib} MiB", "outcome": "passed",
            "given": {"dtype": "bf16", "mode": mode, "free_mib": mib},
        }
        for mode in ("eager", "captured") for mib in (1024, 16)
    ]  # fmt: skip
    warm = {"event": "experiment", "name": "warm", "outcome": "passed"}
    cold = {"event": "experiment", "name": "cold", "outcome": "passed"}
    python = stand_in(tmp_path, START, *events, warm, cold, {"event": "end"})
    log = ROOT / "fixtures/cases/cublas-mla-absorb-bmm--ep8-nvls-dummy-run/server.log"
    done = triage("probe", "--for", log, "--python", python, "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert [r["probe"] for r in shown["results"]][-1] == "mla-absorb-bmm"
    assert shown["cause"] == "cublas-mla-absorb-bmm"
    assert shown["confidence"] != "high"
    assert any(
        "an earlier kernel broke the context" in said
        for r in shown["results"]
        for said in r["meaning"]
    )
    assert any(
        said.startswith("cublas-mla-absorb-bmm: confidence high") for said in shown["changed"]
    )


def test_a_session_gives_its_diagnoses_what_its_probes_found(tmp_path: Path) -> None:
    from triage.core.probes.results import ProbeResult
    from triage.render.probe_document import probe_document
    from triage.session.logs import classify
    from triage.session.probe import stored_probes, with_probes
    from triage.store import SessionFolder

    facts = {"digest": "", "name": "run", "engine": "sglang", "simulated": False, "replay": None}
    session = SessionFolder.create(tmp_path / "s", {**facts, "sources": {}})
    before = classify(str(gloo_log()))
    assert with_probes(session, before) == before
    found = Finding(cause="gloo-hostname-loopback", effect="refutes", why="it resolves")
    (tmp_path / "s/probes").mkdir()
    result = ProbeResult(probe="rendezvous", outcome="done", findings=(found,), meaning=("Fine.",))
    session.write("probes/rendezvous.json", probe_document(result))
    session.write("probes/multicast.json", "{}")
    assert stored_probes(session) == (result,)
    assert before.confidence == "high"
    assert with_probes(session, before).confidence == "medium"

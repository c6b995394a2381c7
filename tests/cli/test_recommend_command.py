"""`triage recommend` on a log: the text, the command in its form, the document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run, is_an_error

ROOT = Path(__file__).parents[2]
CASES = ROOT / "fixtures/cases"
SERIES = ROOT / "recipes/series-4flags.yaml"
OOM = CASES / "graph-capture-oom--one-rank-of-eight/server.log"
REFUSED = CASES / "args-unrecognized--another-engines-flags/server.log"
pytestmark = pytest.mark.real


def test_a_log_alone_gives_proposals_and_the_rebuilt_command(triage: Run) -> None:
    done = triage("recommend", OOM)
    assert done.returncode == 0
    assert done.stdout.startswith("graph-capture-oom in graph-capture")
    assert "+  --cuda-graph-max-bs-decode" in done.stdout or "+  --mem-fraction" in done.stdout
    command = done.stdout.split("to paste:\n")[1]
    assert command.startswith("python3 -m sglang.launch_server --model-path")
    assert "rebuilt" in done.stderr


def test_the_answer_comes_in_the_form_of_the_command_that_was_given(
    triage: Run, tmp_path: Path
) -> None:
    (tmp_path / "start.sh").write_text(
        "#!/bin/sh\n# ours\npython3 -m sglang.launch_server \\\n  --model-path /m \\\n"
        "  --max-model-len 512 \\\n  --gpu-memory-utilization 0.9 --api-key sesame-street\n"
    )
    done = triage("recommend", REFUSED, "--command", "start.sh", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    first = document["proposals"][0]
    assert first["config"]["flags"]["context-length"] == 512
    assert first["command"].startswith("#!/bin/sh\n# ours\npython3 -m sglang.launch_server \\\n")
    assert "--context-length 512 --mem-fraction-static 0.9" in first["command"]
    assert "sesame" not in done.stdout
    assert any("REDACTED stands for" in note for note in first["notes"])
    assert document["plan"]["order"][0] == 1


def test_a_unit_is_answered_with_a_drop_in(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "s.service").write_text(
        "[Service]\nEnvironment=A=1\nExecStart=/opt/venv/bin/python3 -m sglang.launch_server"
        " --model-path /m --max-model-len 512 --gpu-memory-utilization 0.9\nRestart=always\n"
    )
    done = triage("recommend", REFUSED, "--command", "s.service")
    drop_in = done.stdout.split("to paste:\n")[1]
    assert drop_in.splitlines()[1:3] == ["[Service]", "ExecStart="]
    assert "Restart" not in drop_in
    assert "--context-length 512 --mem-fraction-static 0.9" in drop_in


def test_another_proposal_is_printed_on_request(triage: Run) -> None:
    first, second = (triage("recommend", OOM, "--pick", str(n)).stdout for n in (1, 2))
    assert "with 1., as a diff" in first
    assert "with 2., as a diff" in second
    both = triage("recommend", OOM, "--every").stdout
    assert "with 1., as a diff" in both
    assert "with 2., as a diff" in both
    is_an_error(triage("recommend", OOM, "--pick", "99"), 2, "there is no proposal 99")


def test_a_log_without_a_failure_has_nothing_to_repair(triage: Run, tmp_path: Path) -> None:
    healthy = next(CASES.glob("healthy--*/server.log"))
    is_an_error(triage("recommend", healthy), 3, "came up: there is nothing to repair")
    (tmp_path / "x.log").write_text("hello\n")
    is_an_error(triage("recommend", "x.log"), 3, "no line of an engine")
    is_an_error(triage("recommend", "missing.log"), 2, "does not exist")
    is_an_error(triage("recommend", CASES), 2, "stands for .* logs")
    is_an_error(triage("recommend", OOM, "--command", "missing.sh"), 2, "no such file")


def test_a_single_launch_is_answered_with_its_own_command(triage: Run, tmp_path: Path) -> None:
    words = (
        "python3",
        "-c",
        "raise SystemExit('x: error: unrecognized arguments: --enable_metrics')",
    )
    done = triage(
        "run", "--session", "once", "--", *words, "--model-path", "/m", "--enable_metrics"
    )
    assert done.returncode in (10, 11), done.stderr
    found = triage("recommend", "once", "--json")
    document = json.loads(found.stdout)
    assert document["given"]
    assert "--enable-metrics" in document["proposals"][0]["command"]


def test_what_holds_a_set_that_failed_otherwise_is_not_told_to_keep_more(triage: Run) -> None:
    """{ep-size} fails by itself, so no remedy of the other failure is proposed beside it."""
    assert triage("bisect", SERIES, "--speed", "1000").returncode == 0
    done = triage("recommend", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [s["items"] for s in found["sets"] if len(s["items"]) == 1] == [["ep-size"]]
    kept = [one["config"]["flags"].get("ep-size") for one in found["proposals"]]
    assert kept
    assert set(kept) == {None}

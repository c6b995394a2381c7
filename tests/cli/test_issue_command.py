"""`triage issue` as a user meets it: from a session, from logs of both engines, and never too long."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run, is_an_error
from jsonschema import Draft202012Validator

from triage.core.handover.upstream import MOST_CHARACTERS
from triage.session.issue import report

ROOT = Path(__file__).parents[2]
CASES = ROOT / "fixtures/cases"
SCHEMA = json.loads((ROOT / "docs/schema/issue-1.json").read_text())


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.real
def test_the_founding_case_makes_a_report_with_a_minimal_pair(triage: Run, founding: Path) -> None:
    done = triage("issue", str(founding), "--json")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert list(Draft202012Validator(SCHEMA).iter_errors(made)) == []
    fields = {field["name"]: field["text"] for field in made["fields"]}
    assert list(fields) == [
        "Checklist", "Describe the bug", "Reproduction", "Environment", "Attachments",
    ]  # fmt: skip
    assert "A launch that differs in nothing but {ep-size} starts." in fields["Describe the bug"]
    assert "RuntimeError: CUDA error: CUBLAS_STATUS" in fields["Describe the bug"]
    assert "Traceback of the first failing rank, TP" in fields["Describe the bug"]
    fails, starts = fields["Reproduction"].split("Starts:")
    assert "--ep-size 8" in fails
    assert "--ep-size" not in starts
    assert "--enable-nccl-nvls" in starts
    assert made["simulated"] is True
    assert made["title"].endswith("(simulated)")
    assert "must not be filed" in made["body"]
    assert len(made["attachments"]) == 7
    assert "must not be filed" in done.stderr


@pytest.mark.real
def test_logs_are_copied_for_the_attachment_without_names(
    triage: Run, founding: Path, tmp_path: Path
) -> None:
    done = triage("issue", str(founding), "-o", "i.md", "--attach", "logs")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "i.md"
    assert sorted(p.name for p in (tmp_path / "logs").iterdir()) == [
        f"{n:03d}-server.log" for n in range(1, 8)
    ]
    assert (tmp_path / "i.md").read_text().startswith("# \\[Bug\\] cuBLAS fails")


LOG = """\
gpu-7.corp:1234:1301 [0] NCCL INFO Bootstrap: Using eth0:10.20.30.40<0>
[2026-01-01 00:00:00] server_args=ServerArgs(model_path='/home/ada/models/x', tp_size=2, dist_init_addr='gpu-7.corp:5000', api_key='sk-abcdefghijklmnopqrstuvwx')
[2026-01-01 00:00:01 TP0] Load weight begin. avail mem=10.00 GB
[2026-01-01 00:00:01 TP1] Load weight begin. avail mem=10.00 GB
[2026-01-01 00:00:09 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/home/ada/sglang/srt/managers/scheduler.py", line 1, in run
    boom()
RuntimeError: strange things at gpu-7.corp, ada@gpu-8.corp, 10.20.30.41 {word}
"""


def test_a_log_makes_a_report_without_names_and_secrets(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LOG.format(word="x"))
    done = triage("issue", "a.log")
    assert done.returncode == 0, done.stderr
    for gone in ("gpu-7", "gpu-8", "10.20.30", "ada", "sk-abc"):
        assert gone not in done.stdout, gone
    assert "RuntimeError: strange things at host" in done.stdout.replace("\\", "")
    assert "A configuration that starts is not known" in done.stdout
    assert "--tp-size 2" in done.stdout
    assert "first failing rank, TP1, in phase model-construct" in done.stdout
    assert "https://github.com/sgl-project/sglang/issues/new" in done.stderr


@pytest.mark.parametrize("word", ["\U0001f525" * 100_000, "`" * 200_000])
def test_no_report_is_longer_than_the_site_takes(tmp_path: Path, word: str) -> None:
    log = tmp_path / "a.log"
    frames = "".join(f'  File "/x/{n}.py", line 1, in f\n    {word[:2000]}\n' for n in range(150))
    text = LOG.format(word=word).replace("    boom()\n", f"    boom()\n{frames}")
    log.write_text(text)
    made = report(log)
    assert units(made.text) <= MOST_CHARACTERS
    assert made.cut
    assert "## Environment" in made.text
    assert "RuntimeError: strange things" in made.text


@pytest.mark.parametrize(
    "case", sorted(p for p in CASES.iterdir() if "--vllm" in p.name)[:4], ids=lambda p: p.name
)
def test_a_log_of_vllm_is_reported_in_its_own_form(case: Path) -> None:
    made = report(case / "server.log")
    assert made.form.engine == "vllm"
    assert made.text.index("## Your current environment") < made.text.index("## Describe the bug")
    assert made.document.title.startswith("[Bug]: ")
    assert "collect_env.py" in made.text


def failing() -> list[Path]:
    named = sorted(p for p in CASES.iterdir() if not p.name.startswith(("healthy--", "hung--")))
    return named[::40]


@pytest.mark.parametrize("case", failing(), ids=lambda p: p.name)
def test_reports_of_recorded_failures_have_every_field_and_fit(case: Path) -> None:
    made = report(case / "server.log")
    assert units(made.text) <= MOST_CHARACTERS
    titles = [s.title for s in made.document.sections]
    assert made.form.bug in titles
    assert made.form.environment in titles


def test_what_is_no_failure_is_not_reported(triage: Run, tmp_path: Path) -> None:
    healthy = next(p for p in sorted(CASES.iterdir()) if p.name.startswith("healthy--"))
    is_an_error(triage("issue", str(healthy / "server.log")), 3, "shows no failure")
    is_an_error(triage("issue", "none.log"), 2, "none.log does not exist")
    is_an_error(triage("issue"), 3, "there is no session")

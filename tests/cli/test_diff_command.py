"""`triage diff` at the command line: its words, its exit codes, its errors."""

from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path

import pytest
from command_line import Run, is_an_error

ROOT = Path(__file__).parents[2]
CASES = ROOT / "fixtures/cases"
ONE, TWO = CASES / "healthy--tiny-tp1/server.log", CASES / "healthy--native-tp2/server.log"


def test_two_logs_are_compared_in_text_and_in_json(triage: Run) -> None:
    shown = triage("diff", ONE, TWO)
    assert shown.returncode == 0, shown.stderr
    assert "\ndifferent\n" in shown.stdout
    assert [line.split()[0] for line in shown.stdout.splitlines() if " -> " in line][:2] == [
        "model-impl", "tp-size",
    ]  # fmt: skip
    assert shown.stderr == ""
    found = json.loads(triage("diff", "--json", ONE, TWO).stdout)
    assert next(iter(found)) == "schema"
    fields = {c["field"]: (c["good"], c["bad"]) for c in found["resolved"]["changes"]}
    assert fields == {"model_impl": ("transformers", "auto"), "tp_size": (1, 2)}
    assert found["user"] == {
        "compared": False, "notes": ["a log does not tell what was typed"], "changes": [],
    }  # fmt: skip


def test_the_exit_code_tells_only_where_it_is_asked_for(triage: Run) -> None:
    assert triage("diff", ONE, ONE).returncode == 0
    assert triage("diff", "--exit-code", ONE, ONE).returncode == 0
    assert triage("diff", "--exit-code", ONE, TWO).returncode == 14
    assert triage("diff", "--exit-code", "--exit-zero", ONE, TWO).returncode == 0


def test_two_commands_are_compared_by_what_they_set(triage: Run, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.sh", tmp_path / "bad.sh"
    good.write_text("/nowhere/python -m sglang.launch_server --model-path /m --tp 8 --port 1\n")
    bad.write_text(
        "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz NCCL_DEBUG=INFO"
        " /nowhere/python -m sglang.launch_server --model-path /m --tp-size 8 --ep 8 --port 2\n"
    )
    found = triage("diff", "--json", good, bad)
    assert "hf_abcdef" not in found.stdout
    changes = {c["key"]: (c["good"], c["bad"]) for c in json.loads(found.stdout)["user"]["changes"]}
    assert changes["ep-size"] == (None, 8)
    assert changes["env:NCCL_DEBUG"] == (None, "INFO")
    assert set(changes) == {"ep-size", "env:NCCL_DEBUG", "env:HF_TOKEN"}
    assert "hf_abcdef" not in triage("diff", good, bad).stdout


def test_what_names_no_launch_is_refused_with_a_sentence(triage: Run, tmp_path: Path) -> None:
    is_an_error(triage("diff", "nowhere", ONE), 2, "nowhere does not exist")
    (tmp_path / "empty").mkdir()
    is_an_error(triage("diff", ONE, "empty"), 2, "holds no session")
    (tmp_path / "empty.log").write_bytes(b"")
    is_an_error(triage("diff", ONE, "empty.log"), 3, "empty")
    is_an_error(triage("diff", ONE, f"{ONE}:3"), 2, "no session, so it has no trial 3")
    (tmp_path / "x.txt").write_text("nothing of a server\n")
    is_an_error(triage("diff", ONE, "x.txt"), 2, "x.txt")


def test_a_pipe_is_read_as_a_log_and_a_packed_log_is_unpacked(triage: Run, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    feed = threading.Thread(target=pipe.write_bytes, args=(TWO.read_bytes(),))
    feed.start()
    shown = triage("diff", ONE, pipe)
    feed.join()
    assert " -> 2" in shown.stdout
    (tmp_path / "two.log.gz").write_bytes(gzip.compress(TWO.read_bytes()))
    packed = triage("diff", ONE, "two.log.gz")
    assert packed.stdout.partition("\ndifferent\n")[2] == shown.stdout.partition("\ndifferent\n")[2]


@pytest.mark.parametrize(
    "content",
    [
        b"[2026-01-01 10:00:00] server_args={'a': '" + b"x" * 300_000,
        b"[2026-01-01 10:00:00] x\n" * 50_000,
        b"[2026-01-01 10:00:00] server_args={" + b"'k': [" * 5000 + b"\n",
        bytes(range(256)) * 200 + b"\n[2026-01-01 10:00:00] a\n[2026-01-01 10:00:01] b\n",
        b"[2026-01-01 10:00:00] Using \x1b[31m\xff\xfe colours\n[2026-01-01 10:00:00] b\n",
    ],
    ids=["cut", "many", "nested", "binary", "control"],
)
def test_a_hostile_log_is_compared_like_any_other(
    triage: Run, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "bad.log").write_bytes(content)
    shown = triage("diff", ONE, "bad.log")
    assert shown.returncode == 0, shown.stderr
    assert "\x1b" not in shown.stdout

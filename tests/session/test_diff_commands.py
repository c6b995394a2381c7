"""Commands in a comparison: the engine is asked once, and its answer is compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from triage.core.config import Config
from triage.core.resolution import Resolution, unknown
from triage.session import commands
from triage.session.diff import diff

LINE = "[2026-01-01 10:00:00] deepep MoE is enabled. The size is adjusted to {}.\n"


class Answers:
    """Stands for an engine; answers by the flags that it is asked about."""

    def __init__(self, program: Any, env: Any = (), cwd: Path = Path(), **_: Any) -> None:
        del env, cwd
        asked.append(" ".join(program))
        self.why = "it is broken" if "broken" in program[0] else ""

    def __enter__(self) -> Answers:
        return self

    def __exit__(self, *_: object) -> None:
        asked.append("closed")

    def resolve(self, config: Config) -> Resolution:
        if config.get("page-size") == "3":
            return Resolution(
                verdict="rejected", phase="arg-validation", exit_code=1,
                exception="AssertionError", message="must be divisible\nmore",
            )  # fmt: skip
        if config.get("page-size") == "4":
            return unknown("it took too long")
        a2a = config.get("moe-a2a-backend")
        return Resolution(
            verdict="accepted",
            version="0.5.23",
            resolved={"tp_size": 8, "ep_size": 8 if a2a else 1, "moe_a2a_backend": a2a or "none",
                      "cuda_graph_config": {"decode": {"backend": "full"}}},
            env={"NCCL_NVLS_ENABLE": "1" if a2a else "0", "SGLANG_RUN_ID": str(id(config)),
                 "GONE": None},
            log=LINE.format(8) if a2a else "",
        )  # fmt: skip


asked: list[str] = []
PYTHON = "/opt/venv/bin/python -m sglang.launch_server --model-path /m --tp 8"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    asked.clear()
    monkeypatch.setattr(commands, "Engine", Answers)
    for name, flags in {
        "good": "", "a2a": "--moe-a2a-backend deepep", "bad": "--page-size 3",
        "slow": "--page-size 4",
    }.items():  # fmt: skip
        (tmp_path / f"{name}.sh").write_text(f"{PYTHON} {flags}\n")
    return tmp_path


def test_what_the_engine_makes_of_both_is_compared(files: Path) -> None:
    talk: list[str] = []
    found = diff(str(files / "good.sh"), str(files / "a2a.sh"), say=talk.append)
    assert {c.field: (c.kind, c.by) for c in found.resolved} == {
        "moe_a2a_backend": ("typed", ()), "ep_size": ("moved", ("moe-a2a-backend",)),
    }  # fmt: skip
    assert [(c.name, c.good, c.bad, c.told) for c in found.env] == [
        ("NCCL_NVLS_ENABLE", "0", "1", "engine")
    ]
    assert [c.text for c in found.decisions] == [
        "deepep MoE is enabled. The size is adjusted to 8."
    ]
    assert found.good.engine_version == "0.5.23"
    # Both start alike, so the engine is imported once; and it is ended.
    assert asked == ["/opt/venv/bin/python -m sglang.launch_server", "closed"]
    assert len(talk) == 1


@pytest.mark.parametrize(
    ("name", "say"),
    [("bad", "the engine rejects it: must be divisible"), ("slow", "it took too long")],
)
def test_a_command_without_resolved_values_says_why(files: Path, name: str, say: str) -> None:
    found = diff(str(files / "good.sh"), str(files / f"{name}.sh"))
    assert [c.key for c in found.user] == ["page-size"]
    assert found.resolved == ()
    assert found.env == ()
    assert any(say in text for part, text in found.notes if part == "resolved")
    assert found.bad.outcome == ("failed" if name == "bad" else "")


def test_nobody_is_asked_where_that_is_not_wanted_or_not_possible(files: Path) -> None:
    diff(str(files / "good.sh"), str(files / "a2a.sh"), ask=False)
    assert asked == []
    (files / "docker.sh").write_text("docker run image python -m sglang.launch_server --model x\n")
    diff(str(files / "docker.sh"), str(files / "docker.sh"))
    assert asked == []

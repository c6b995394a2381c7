"""The committed cases are what the descriptions in tools/cases give."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CASES = ROOT / "fixtures/cases"


@pytest.fixture(scope="module")
def builder() -> Any:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import build_cases
    finally:
        sys.path.pop(0)
    return build_cases


def described(builder: Any, tmp_path: Path, text: str, subject: str = "weight-oom") -> Any:
    (tmp_path / f"{subject}.yaml").write_text(text)
    return builder.specs(tmp_path)[0]


def test_the_committed_cases_are_what_the_builder_writes(builder: Any) -> None:
    different = []
    for spec in builder.specs():
        log, case = builder.build(spec)
        folder = CASES / spec.name
        if not folder.is_dir() or (
            (folder / "server.log").read_bytes() != log
            or (folder / "case.yaml").read_text() != case
        ):
            different.append(spec.name)
    assert not different, "run `make cases` and commit what it writes"


@pytest.mark.parametrize("wrap", ["none", "compose", "docker-t", "docker-json", "cri", "journal",
                                  "journal-iso", "ray", "srun", "mpirun", "pod"])  # fmt: skip
def test_the_named_root_is_where_the_exception_was_printed(
    builder: Any, tmp_path: Path, wrap: str
) -> None:
    spec = described(
        builder,
        tmp_path,
        "- {case: x, tp: 4, ranks: [2], phase: weight-load, error: 'ValueError: this one',"
        f" wrap: {wrap}, after: [peers-gloo], restarts: 2}}",
    )
    log, case = builder.build(spec)
    expect = builder.yaml.safe_load(case)["expect"]
    lines = log.decode().split("\n")
    numbers = [n for n, line in enumerate(lines, 1) if "ValueError: this one" in line]
    assert expect["root"]["line"] == numbers[0]
    assert len(numbers) == 2
    assert expect["ranks"] == ["TP2"]
    assert expect["ranks_total"] == 4


def test_a_cut_log_begins_so_many_lines_before_the_failure(builder: Any, tmp_path: Path) -> None:
    text = "- {case: x, phase: weight-load, error: 'ValueError: this one', cut: %s}"
    kept, _ = builder.build(described(builder, tmp_path, text % 2))
    inside, _ = builder.build(described(builder, tmp_path, text % -3))
    assert b"hit an exception" in kept.split(b"\n")[2]
    assert b"hit an exception" not in inside
    assert b"ValueError: this one" in inside


def test_an_unknown_key_is_refused(builder: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown keys errors"):
        described(builder, tmp_path, "- {case: x, errors: 'ValueError: a'}")

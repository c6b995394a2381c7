"""In which phases recorded cases show each cause."""

from __future__ import annotations

from pathlib import Path

from triage.core.phases import PHASES
from triage.knowledge import load_causes
from triage.knowledge.seen import phases_of_cases, seen_phases


def case(folder: Path, name: str, cause: str, phase: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "server.log").write_text("x")
    (folder / name / "case.yaml").write_text(
        "schema: triage.case/1\n"
        "source: {kind: reconstructed, engine: sglang, version: '0.5.23', note: n}\n"
        f"expect: {{outcome: failed, cause: {cause}, phase: {phase}}}\n"
    )


def test_phases_are_gathered_in_the_order_of_a_startup(tmp_path: Path) -> None:
    case(tmp_path, "boom--a", "boom", "graph-capture")
    case(tmp_path, "boom--b", "boom", "weight-load")
    case(tmp_path, "boom--c", "boom", "graph-capture")
    case(tmp_path, "dull--a", "dull", "unknown")
    assert phases_of_cases(tmp_path) == {"boom": ["weight-load", "graph-capture"]}


def test_what_is_stored_names_causes_and_phases_that_exist() -> None:
    stored = seen_phases()
    known = {cause.id for cause in load_causes()}
    assert set(stored) <= known
    assert {phase for phases in stored.values() for phase in phases} <= set(PHASES)
    assert len(stored) > len(known) / 2, "most causes have a case"

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]
CASES = ROOT / "fixtures/cases"


@pytest.fixture(scope="module")
def recorder() -> Any:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import record_cases
    finally:
        sys.path.pop(0)
    return record_cases


def stored(name: str) -> Any:
    return yaml.safe_load((CASES / name / "case.yaml").read_text())


def test_each_scenario_has_a_fixture_that_says_what_the_scenario_says(recorder: ModuleType) -> None:
    file = recorder.load_scenarios()
    for name, scenario in file.by_name().items():
        log = (CASES / name / "server.log").read_bytes()
        assert stored(name) == recorder.case_document(scenario, log, file.engine_version), name


def test_no_recorded_log_holds_a_path_or_a_name_of_this_machine(
    recorder: ModuleType,
) -> None:
    paths, names = recorder.replacements()
    for name in recorder.load_scenarios().by_name():
        raw = (CASES / name / "server.log").read_bytes()
        assert raw == recorder.redact(raw, paths=paths, names=names), name


def test_lines_are_counted_by_line_feeds_from_one(recorder: ModuleType) -> None:
    assert recorder.line_number(b"a\rb\nc\r\nd", b"d") == 3


def test_a_piece_that_no_line_holds_is_an_error(recorder: ModuleType) -> None:
    with pytest.raises(SystemExit, match="no line holds b'x'"):
        recorder.line_number(b"a\nb", b"x")

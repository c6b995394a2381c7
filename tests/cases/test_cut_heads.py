"""Who has only the end of a log is told nothing wrong with high confidence."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.core.log.diagnose import diagnose
from triage.finder import fast
from triage.knowledge import load_cases, load_causes, load_flag_table

CASES = Path(__file__).parents[2] / "fixtures/cases"
CAUSES, TABLE = load_causes(), load_flag_table()


@pytest.mark.parametrize("kept", [30, 60])
def test_the_last_lines_name_no_wrong_cause_with_high_confidence(kept: int) -> None:
    wrong, right, cut = [], 0, 0
    for case in load_cases(CASES):
        lines = case.log.read_bytes().splitlines(keepends=True)
        if len(lines) <= kept or case.known_miss:
            continue
        cut += 1
        d = diagnose([b"".join(lines[-kept:])], CAUSES, table=TABLE, finder=fast)
        if d.cause == case.expect["cause"]:
            right += 1
        elif d.cause and d.confidence == "high":
            wrong.append(f"{case.name}: {d.cause}")
    assert wrong == []
    assert cut > 300
    assert right > 0.8 * cut

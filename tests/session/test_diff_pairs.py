"""Pairs of real launches that differ in one flag: the diff shows it, what it moved, and nothing else."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from triage.core.diff.difference import Diff
from triage.session.diff import diff

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "fixtures/pairs"
sys.path.insert(0, str(ROOT / "tools"))
try:
    from record_pairs import load_pairs
finally:
    sys.path.pop(0)

if TYPE_CHECKING:
    from record_pairs import Shows

PAIRS = load_pairs().pairs
MUST = {"page-size", "moe-a2a-backend", "attn-dp-size", "speculative-algorithm"}


def of(pair: Shows) -> Diff:
    return diff(str(LOGS / f"{pair.good}.log"), str(LOGS / f"{pair.bad}.log"))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.good}-{pair.bad}")
def test_the_flag_is_shown_with_what_it_moved_and_nothing_else(pair: Shows) -> None:
    found = of(pair)
    assert tuple(c.flag for c in found.resolved if c.kind == "open") == pair.set
    moved: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for change in found.resolved:
        if change.kind == "moved":
            assert len(change.by) == 1, change
            assert change.where or change.also
            moved[change.by[0]] += (change.flag or change.field,)
    assert dict(moved) == pair.moved
    assert tuple(c.name for c in found.env) == pair.env
    assert tuple(c.name for c in found.memory) == pair.memory
    assert tuple(c.phase for c in found.timeline) == pair.timeline
    said = [c.text for c in found.decisions]
    assert len(said) == len(pair.decisions)
    assert all(map(str.startswith, said, pair.decisions))
    assert found.versions == ()
    shows = (*pair.set, *pair.decisions, *pair.env, *pair.memory, *pair.timeline)
    assert found.equal == (not shows)


def test_there_are_enough_pairs_and_those_that_matter() -> None:
    assert len(PAIRS) >= 12
    assert {flag for pair in PAIRS for flag in pair.set} >= MUST
    assert {pair.good for pair in PAIRS} | {pair.bad for pair in PAIRS} == {
        path.stem for path in LOGS.glob("*.log")
    }


@pytest.mark.parametrize("pair", PAIRS[:3], ids=lambda pair: f"{pair.good}-{pair.bad}")
@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("'grammar_backend': 'xgrammar'", "'grammar_backend': 'none'", "grammar_backend"),
        ("'enable_mixed_chunk': False", "'enable_mixed_chunk': True", "enable_mixed_chunk"),
        ("'sampling_backend': 'pytorch'", "'sampling_backend': 'flashinfer'", "sampling_backend"),
    ],
)
def test_a_planted_moved_field_appears(
    pair: Shows, tmp_path: Path, old: str, new: str, field: str
) -> None:
    text = (LOGS / f"{pair.bad}.log").read_text()
    assert text.count(old) == 1
    planted = tmp_path / "planted.log"
    planted.write_text(text.replace(old, new))
    found = diff(str(LOGS / f"{pair.good}.log"), str(planted))
    assert field in {change.field for change in found.resolved}
    expected = {flag.replace("-", "_") for flag in pair.set} | {field}
    assert {change.field for change in found.resolved} == expected


def test_a_planted_decision_appears(tmp_path: Path) -> None:
    text = (LOGS / "llama-again.log").read_text()
    line = next(x for x in text.splitlines() if "Load weight begin" in x)
    stamp = line.partition("]")[0]
    said = f"{stamp}] Using triton as MoE runner backend."
    planted = tmp_path / "planted.log"
    planted.write_text(text.replace(line, f"{said}\n{line}"))
    found = diff(str(LOGS / "llama.log"), str(planted))
    assert [(c.side, c.text) for c in found.decisions] == [
        ("bad", "Using triton as MoE runner backend.")
    ]

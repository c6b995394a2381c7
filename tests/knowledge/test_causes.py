"""The causes that the package ships: checked, indexed, shown by fixtures, silent on healthy logs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import asdict, fields
from pathlib import Path

import pytest

from triage.core.causes import Cause, Role, Severity
from triage.core.log.gather import FIXED
from triage.core.log.signatures import Table, table_of
from triage.knowledge import (
    check_causes,
    load_cases,
    load_causes,
    load_causes_from,
    load_flag_table,
)
from triage.knowledge.loader import flag_documents, successors
from triage.knowledge.stored import decode
from triage.knowledge.written import CAUSES, FLAGS, INDEX, encode, encode_flags

CASES = load_cases(Path(__file__).parents[2] / "fixtures/cases")
ALL = load_causes_from(CAUSES)
ROOTS = [cause for cause in ALL if cause.role is Role.ROOT]


def test_the_checks_find_nothing_to_say() -> None:
    assert check_causes(CAUSES) == ()


def test_the_index_is_current() -> None:
    assert INDEX.read_text() == encode(ALL, FIXED), "run: python -m triage.knowledge.index"


def test_the_stored_flag_tables_are_current() -> None:
    text = encode_flags(flag_documents(), successors())
    assert FLAGS.read_text() == text, "run: python -m triage.knowledge.index"


def test_what_the_index_holds_is_what_the_files_say() -> None:
    assert tuple(load_causes()) == ALL
    raw = encode(ALL, FIXED).encode()
    found = decode(lambda start, size: raw[start : start + size])
    assert tuple(found) == ALL
    assert plain(found.table) == plain(table_of(ALL, FIXED))
    assert json.loads(encode(ALL, FIXED))["count"] == len(ALL)


def plain(table: Table) -> object:
    """The table as lists."""
    values = {field.name: getattr(table, field.name) for field in fields(table)}
    patterns = [asdict(pattern) for pattern in table.patterns]
    return json.loads(json.dumps({**values, "clues": [*table.clues], "patterns": patterns}))


def test_loading_the_index_and_a_flag_table_imports_neither_yaml_nor_pydantic() -> None:
    code = (
        "import sys, triage.knowledge as k; k.load_causes(); k.load_flag_table();"
        "print(sorted({'yaml', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_flag_table_knows_the_flags_of_the_founding_case() -> None:
    table = load_flag_table()
    assert table.version == "0.5.23"
    assert {"ep-size", "enable-nccl-nvls", "enable-flashinfer-allreduce-fusion"} <= set(table.specs)


@pytest.mark.parametrize("cause", ROOTS, ids=lambda cause: cause.id)
def test_every_root_cause_is_shown_by_a_case(cause: Cause) -> None:
    assert [case.name for case in CASES if case.expect["cause"] == cause.id] != []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_named_after_what_it_shows(case: object) -> None:
    assert isinstance(case, type(CASES[0]))
    outcomes = {"healthy": "healthy", "hung": "hung", "interrupted": "interrupted"}
    if case.subject in outcomes:
        assert (case.expect["outcome"], case.expect["cause"]) == (outcomes[case.subject], None)
    elif case.subject == "unknown":
        assert case.expect["cause"] is None
    else:
        assert case.expect["cause"] == case.subject
    assert case.note


# Behind the ready line of these, a client or another program speaks of a failure.
OTHERS_WORDS = ("healthy--a-traceback-in-a-chat-tp2", "healthy--exporter-fails-beside-it-compose")


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.subject == "healthy"], ids=lambda case: case.name
)
def test_no_fatal_pattern_hits_a_line_of_a_healthy_log(case: object) -> None:
    assert isinstance(case, type(CASES[0]))
    lines = case.log.read_text(errors="replace").splitlines()
    if case.name in OTHERS_WORDS:
        lines = lines[: next(n for n, line in enumerate(lines) if "fired up and ready" in line)]
    before_stop = [line for line in lines if "SIGTERM" not in line]
    hits = [
        (cause.id, line)
        for cause in ROOTS
        if cause.severity is Severity.FATAL and not cause.frames and not cause.hang
        for pattern in map(re.compile, cause.patterns)
        for line in before_stop
        if pattern.search(re.sub(r"^\[[^\]]*\] ", "", line))
    ]
    assert hits == []


@pytest.mark.parametrize("cause", ROOTS, ids=lambda cause: cause.id)
def test_sources_are_public_threads_or_files_of_the_engine(cause: Cause) -> None:
    good = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull|blob)/\S+")
    assert [source for source in cause.sources if not good.fullmatch(source)] == []


def test_an_example_is_claimed_by_other_causes_only_where_they_give_way() -> None:
    """The matrix of who else matches whose examples, without what decides by frame or phase."""
    related = {
        frozenset((cause.id, other))
        for cause in ALL
        for other in (*cause.yields_to, *cause.explains, *cause.confused_with)
    }
    # Compiled once: they are more than `re` remembers.
    free = [
        (cause, [re.compile(pattern) for pattern in cause.patterns])
        for cause in ALL
        if not cause.frames and not cause.phases
    ]
    clashes = [
        (cause.id, other.id, example)
        for cause in ROOTS
        for example in cause.examples
        for other, patterns in free
        if other.role is Role.ROOT and other.id != cause.id
        if frozenset((cause.id, other.id)) not in related
        if any(pattern.search(example) for pattern in patterns)
    ]
    assert clashes == []


@pytest.mark.parametrize(
    ("line", "innocent_of"),
    [
        ("Subprocess scheduler_0 (pid=9) crashed with exit code -9.", "host-oom-killed"),
        ("AssertionError: FlashAttention v4 Backend requires SM>=90 and SM<=110.", "fa3-on-blackwell"),
        ("Exception: Capture cuda graph failed: out of luck", "nonetype-capture-batch-field"),
        ("Ignore import error when loading sglang.srt.models.x: No module named 'cutlass'",
         "python-module-missing"),
        ("Warning: User-specified context_length (9) is greater than the derived context_length (5).",
         "context-length-over-derived"),
    ],
)  # fmt: skip
def test_a_decoy_is_not_taken_for_the_cause(line: str, innocent_of: str) -> None:
    cause = next(cause for cause in ALL if cause.id == innocent_of)
    assert not any(re.search(pattern, line) for pattern in cause.patterns)

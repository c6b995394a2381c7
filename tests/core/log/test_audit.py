"""Each thing that an audit finds, shown by a knowledge base that has it, and by one that has not."""

from __future__ import annotations

import pytest

from triage.core.causes import Cause, Role
from triage.core.log.audit import Audit, Literals, Seen, audit


def cause(id_: str, pattern: str, example: str, **more: object) -> Cause:
    return Cause(id=id_, title=id_, patterns=(pattern,), examples=(example,), **more)  # type: ignore[arg-type]


def seen(expected: str, found: str | None = None, **more: object) -> Seen:
    values = {
        "name": f"{expected or 'x'}--case", "expected": expected,
        "found": expected if found is None else found,
        "expected_outcome": "failed", "found_outcome": "failed", **more,
    }  # fmt: skip
    return Seen(**values)  # type: ignore[arg-type]


ONE = cause("one-broke", r"^RuntimeError: one \w+ broke", "RuntimeError: one thing broke")
TWO = cause("two-broke", r"^RuntimeError: two \w+ broke", "RuntimeError: two thing broke")
SHOWN = (seen("one-broke"), seen("two-broke"))


def told(found: Audit) -> list[tuple[str, str]]:
    return [(entry.kind, entry.about) for entry in found.entries]


def test_a_knowledge_base_that_is_shown_by_its_cases_has_no_entries() -> None:
    found = audit((ONE, TWO), SHOWN, {}, 0)
    assert (found.entries, found.cells, found.cases, found.causes) == ((), (), 2, 2)


def test_only_cells_off_the_diagonal_are_told_with_their_cases() -> None:
    cases = (
        *SHOWN,
        seen("one-broke", "two-broke"),
        seen("one-broke", "two-broke", known_miss=True),
        seen("one-broke", ""),
        seen("", "one-broke", expected_outcome="healthy"),
        seen("", expected_outcome="healthy", found_outcome="hung"),
    )
    found = audit((ONE, TWO), cases, {}, 0)
    assert found.cells == (
        ("healthy", "hung", 1),
        ("healthy", "one-broke", 1),
        ("one-broke", "two-broke", 2),
        ("one-broke", "unknown (failed)", 1),
    )
    assert {kind for kind, _ in told(found)} == {"confusion"}
    assert (
        "one-broke is taken for two-broke in 2 cases (1 known): one-broke--case"
        in [entry.say for entry in found.entries][2]
    )


def test_a_cause_that_wins_no_case_is_named_and_others_than_roots_need_none() -> None:
    noise = cause("noise", "noise", "noise", role=Role.BENIGN)
    found = audit((ONE, TWO, noise), (seen("one-broke"), seen("two-broke", "one-broke")), {}, 0)
    assert told(found) == [("confusion", "two-broke"), ("no-case", "two-broke")]
    assert found.entries[1].say == "two-broke wins no case: its 1 case show something else."
    assert audit((TWO,), (), {}, 0).entries[0].say == "two-broke wins no case: it has no case."


@pytest.mark.parametrize("wins", ["yields_to", "explains"])
def test_a_pattern_whose_examples_another_cause_wins_is_shadowed(wins: str) -> None:
    wide = cause("wide", r"^RuntimeError: one", "RuntimeError: one x", yields_to=("one-broke",))
    lost = cause("lost", r"one \w+ broke", "RuntimeError: one big broke", **(
        {"yields_to": ("one-broke",)} if wins == "yields_to" else {}
    ))  # fmt: skip
    first = ONE if wins == "yields_to" else Cause(
        id=ONE.id, title="", patterns=ONE.patterns, examples=ONE.examples, explains=("lost",)
    )  # fmt: skip
    cases = (seen("one-broke"), seen("wide"), seen("lost"))
    found = audit((first, wide, lost), cases, {}, 0)
    assert told(found) == [("shadowed", "lost")]
    assert "one-broke does" in found.entries[0].say


def test_a_look_alike_needs_a_case_of_its_own() -> None:
    like = cause(
        "like", "^RuntimeError: like", "RuntimeError: like x", confused_with=("two-broke",)
    )
    found = audit((like, TWO), (seen("like"),), {}, 0)
    assert told(found) == [("no-case", "two-broke"), ("no-confuser-case", "two-broke")]
    assert "like can be confused with two-broke, which has no case." in found.entries[1].say
    assert audit((like, TWO), (seen("like"), seen("two-broke")), {}, 0).entries == ()


def test_a_literal_is_told_only_above_five_idle_hits_a_megabyte() -> None:
    (literal,) = Literals((ONE,))
    assert audit((ONE,), (seen("one-broke"),), {literal: 5}, 200_000).entries == ()
    assert audit((ONE,), (seen("one-broke"),), {literal: 10}, 2_000_000).entries == ()
    found = audit((ONE,), (seen("one-broke"),), {literal: 12}, 2_000_000)
    assert told(found) == [("common-literal", "one-broke")]
    assert "in 6 lines a MB" in found.entries[0].say


def test_a_hit_is_idle_unless_a_pattern_of_the_literal_matches_the_cleaned_line() -> None:
    literals = Literals((ONE,))
    (literal,) = literals
    assert literals.owners(literal) == ("one-broke",)
    for raw, idle in (
        (b"[2026-01-01 00:00:00 TP0] RuntimeError: one thing broke", False),
        (b"\x1b[31mRuntimeError: one thing broke\x1b[0m", False),
        (b"[2026-01-01 00:00:00 TP0] said RuntimeError: one thing held", True),
    ):
        assert literals.idle(literal, raw, raw.index(literal.encode())) is idle

"""The general runbook of a cause, and the index of all of them."""

from __future__ import annotations

from triage.core.causes import Cause, Disposition, Origin, Remedy, Role
from triage.core.handover.document import Block, Bullets, Code, Paragraph, Runbook, Table
from triage.core.handover.general import ANY_PHASE, NEVER, cause_runbook, index_of

BOOM = Cause(
    id="boom",
    title="It goes boom",
    phases=("graph-capture", "weight-load"),
    examples=("BoomError: 1", "BoomError: 2", "BoomError: 3", "BoomError: 4"),
    frames=("capture",),
    means="A field stays empty.",
    culprit_flags=("ep-size",),
    culprit_env=("NCCL_X",),
    confused_with=("hush", "gone"),
    decoys=("Possible solutions",),
    remedies=(
        Remedy(
            say="Lower it to {size}",
            set_flags=(("ep-size", "{size}"),),
            disposition=Disposition.LOSSY,
            cost="speed",
            evidence="user-confirmed",
        ),
        Remedy(say="Look closer", set_env=(("DEBUG", "1"),), probe=True, evidence="inferred"),
    ),
    origins=(Origin(say="A worm", basis="hypothesis", look="holes"),),
    discriminator="one launch without apples.",
    escalate="the worm is back.",
    sources=("https://github.com/x/y/issues/1",),
)
HUSH = Cause(id="hush", title="It hangs", hang=True)
NOISE = Cause(id="noise", title="Peers complain", role=Role.CASCADE, phases=("weight-load",))
KNOWN = (BOOM, HUSH, NOISE)


def section(book: Runbook, title: str) -> tuple[Block, ...]:
    (blocks,) = (s.blocks for s in book.sections if s.title == title)
    return blocks


def test_sections_come_in_the_order_in_which_one_on_call_needs_them() -> None:
    assert [s.title for s in cause_runbook(BOOM, KNOWN).sections] == [
        "What it means",
        "How to recognise it",
        "First checks",
        "What is known to bring it about",
        "What misleads",
        "What helps",
        "How to prove it",
        "When to escalate",
        "Sources",
    ]


def test_the_phases_stand_in_the_order_of_a_startup() -> None:
    facts = dict(cause_runbook(BOOM, KNOWN).facts)
    assert facts["shows in"] == "weight-load, graph-capture"
    assert facts["suspects"] == "--ep-size, NCCL_X"
    assert dict(cause_runbook(HUSH, KNOWN).facts)["how it ends"] == (
        "the launch hangs, without an error"
    )


def test_it_shows_lines_commands_and_what_they_must_answer() -> None:
    book = cause_runbook(BOOM, KNOWN)
    assert section(book, "How to recognise it")[1] == Code(
        "BoomError: 1\nBoomError: 2\nBoomError: 3"
    )
    said, command, *_ = section(book, "First checks")
    assert isinstance(said, Paragraph)
    assert "must name boom" in said.text
    assert "exit code 10" in said.text
    assert command == Code("triage classify LOG", "sh")
    assert section(book, "How to prove it")[1:] == (
        Code("triage recommend LOG", "sh"),
        Code("triage confirm COMMAND", "sh"),
    )


def test_remedies_are_a_table_with_change_price_and_basis() -> None:
    (table,) = section(cause_runbook(BOOM, KNOWN), "What helps")
    assert isinstance(table, Table)
    assert table.rows == (
        ("Lower it to <size>", "--ep-size <size>", "lossy", "speed", "confirmed by a user"),
        ("Look closer", "DEBUG=1", "finds out more", "", "inferred, not tried"),
    )


def test_origins_come_with_the_one_test() -> None:
    table, test = section(cause_runbook(BOOM, KNOWN), "What is known to bring it about")
    assert table == Table(
        ("what", "how it is known", "how to tell"), (("A worm", "hypothesis", "holes"),)
    )
    assert test == Paragraph("The one test that would discriminate: one launch without apples.")


def test_only_causes_that_exist_are_named_beside_it() -> None:
    assert section(cause_runbook(BOOM, KNOWN), "What misleads")[-1] == Table(
        ("cause", "what it is"), (("hush", "It hangs"),)
    )


def test_the_causes_own_word_comes_first_when_to_escalate() -> None:
    (steps,) = section(cause_runbook(BOOM, KNOWN), "When to escalate")
    assert isinstance(steps, Bullets)
    assert steps.items[0] == "The worm is back."
    assert any("triage issue LOG" in step for step in steps.items)


def test_noise_has_no_checks_and_says_that_it_is_none() -> None:
    book = cause_runbook(NOISE, KNOWN)
    titles = [s.title for s in book.sections]
    assert "First checks" not in titles
    assert "What helps" not in titles
    (said,) = section(book, "What it means")
    assert isinstance(said, Paragraph)
    assert said.text.startswith("It is never the reason of a failure: it is a consequence")


def test_a_cause_without_a_remedy_says_so() -> None:
    assert section(cause_runbook(HUSH, KNOWN), "What helps") == (Paragraph("No remedy is known."),)


def test_the_index_has_every_cause_under_each_of_its_phases() -> None:
    index = index_of(KNOWN)
    assert [s.title for s in index.sections] == ["weight-load", "graph-capture", ANY_PHASE, NEVER]
    rows = {
        s.title: [row[0] for b in s.blocks if isinstance(b, Table) for row in b.rows]
        for s in index.sections
    }
    assert rows == {
        "weight-load": ["boom"],
        "graph-capture": ["boom"],
        ANY_PHASE: ["hush"],
        NEVER: ["noise"],
    }
    assert index.summary[0].startswith("2 causes, by the phase")


def test_a_cause_that_may_show_anywhere_stands_where_it_was_seen() -> None:
    seen = {"hush": ("graph-capture", "dist-init"), "boom": ("serving",)}
    index = index_of(KNOWN, seen)
    rows = {
        s.title: [row[0] for b in s.blocks if isinstance(b, Table) for row in b.rows]
        for s in index.sections
    }
    assert rows == {
        "dist-init": ["hush"],
        "weight-load": ["boom"],
        "graph-capture": ["boom", "hush"],
        NEVER: ["noise"],
    }
    facts = dict(cause_runbook(HUSH, KNOWN, seen).facts)
    assert facts["shows in"] == "any phase; seen in dist-init, graph-capture"

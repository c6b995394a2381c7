"""The report to the engine's authors: its fields, the nearest pair, and what is cut first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from runbook_data import FAILED, JOURNAL, PROBLEM, entry

from triage.core.config import Config
from triage.core.handover.document import Block, Bullets, Code, Paragraph, Runbook, Table
from triage.core.handover.upstream import (
    CUTS,
    Attachment,
    Failure,
    issue_document,
    nearest_pair,
    shown_command,
)
from triage.core.trials import Seen

PAIR = nearest_pair(JOURNAL, "boom")
CASE = Failure(
    diagnosis=replace(FAILED, engine="sglang", engine_version="0.5.23", title="It goes boom",
                      cascade=(60, 61), teardown=(70,)),
    failing="serve --a",
    starting="serve",
    pair=PAIR,
    problem=PROBLEM,
    journal=JOURNAL,
    traceback=("Traceback (most recent call last):", "  frame", "BoomError: 1"),
    environment=(("torch", "2.11"),),
    attachments=(Attachment(file="a.log", what="trial 2", size=9, sha256="ab" * 32),),
    related=("https://github.com/x/y/issues/1",),
)  # fmt: skip


def section(book: Runbook, title: str) -> tuple[Block, ...]:
    (blocks,) = (s.blocks for s in book.sections if s.title == title)
    return blocks


def test_the_fields_are_those_of_the_form() -> None:
    assert [s.title for s in issue_document(CASE).sections] == [
        "Checklist",
        "Describe the bug",
        "Reproduction",
        "Environment",
        "Attachments",
    ]
    vllm = replace(CASE, diagnosis=replace(CASE.diagnosis, engine="vllm"))
    assert [s.title for s in issue_document(vllm).sections] == [
        "Your current environment",
        "Describe the bug",
        "Before submitting a new issue...",
        "Attachments",
    ]
    assert issue_document(CASE).title.startswith("[Bug] It goes boom in graph-capture with ")
    assert issue_document(vllm).title.startswith("[Bug]: ")


def test_the_nearest_pair_differs_in_least_and_is_no_assumed_one() -> None:
    assert PAIR is not None
    assert (PAIR.starts.number, PAIR.fails.number, set(PAIR.only)) == (3, 2, {"ep-size"})
    fewer = (*JOURNAL, entry(8, "enable-nccl-nvls"))
    best = nearest_pair(fewer, "boom")
    assert best is not None
    assert (best.starts.number, best.fails.number, set(best.only)) == (8, 5, {"ep-size"})
    guessed = (*JOURNAL, entry(8, "enable-nccl-nvls", provenance="assumed"))
    kept = nearest_pair(guessed, "boom")
    assert kept is not None
    assert kept.starts.number == 3


def test_without_a_start_or_without_the_failure_there_is_no_pair() -> None:
    assert nearest_pair(JOURNAL, "another") is None
    assert nearest_pair([e for e in JOURNAL if e.seen is not Seen.STARTS], "boom") is None


def test_a_pair_of_one_difference_is_said_to_be_one() -> None:
    near = (*JOURNAL, entry(8, "enable-nccl-nvls"))
    book = issue_document(replace(CASE, pair=nearest_pair(near, "boom"), journal=near))
    assert Paragraph("A launch that differs in nothing but {ep-size} starts.") in section(
        book, "Describe the bug"
    )


def test_the_traceback_is_named_by_rank_and_phase() -> None:
    blocks = section(issue_document(CASE), "Describe the bug")
    at = blocks.index(
        Paragraph("Traceback of the first failing rank, TP3, in phase graph-capture:")
    )
    assert blocks[at + 1] == Code("\n".join(CASE.traceback))
    assert blocks[at + 2] == Paragraph(
        "3 further error lines are consequences or the shutdown, from line 60 of the log on."
    )


def test_both_commands_are_there_to_be_run() -> None:
    blocks = section(issue_document(CASE), "Reproduction")
    assert [b for b in blocks if isinstance(b, Code)] == [
        Code("serve --a", "sh"),
        Code("serve", "sh"),
    ]
    alone = section(issue_document(replace(CASE, starting="")), "Reproduction")
    assert any(isinstance(b, Paragraph) and "is not known" in b.text for b in alone)


def test_what_was_tried_and_what_is_ruled_out() -> None:
    blocks = section(issue_document(CASE), "Describe the bug")
    (table,) = [b for b in blocks if isinstance(b, Table)]
    outcomes = [row[1] for row in table.rows]
    assert outcomes[:3] == ["starts", "this failure", "starts"]
    assert outcomes[3].startswith("another failure: ")
    assert outcomes[5].startswith("unresolved: port ")
    assert outcomes[6].endswith(", assumed")
    said = [b.text for b in blocks if isinstance(b, Paragraph)]
    assert (
        "Ruled out as the reason on its own, because a launch with it starts: note, "
        "enable-nccl-nvls."
    ) in said


def test_nobody_ticks_boxes_for_the_one_who_files_it() -> None:
    blocks = section(issue_document(CASE), "Checklist")
    assert "[x]" not in repr(blocks)
    (steps, related) = [b for b in blocks if isinstance(b, Bullets)]
    assert any("the report is about 0.5.23" in step for step in steps.items)
    assert related == Bullets(CASE.related)


def test_an_example_says_that_it_must_not_be_filed() -> None:
    book = issue_document(replace(CASE, simulated=True))
    assert book.title.endswith("(simulated)")
    first = section(book, "Describe the bug")[0]
    assert isinstance(first, Paragraph)
    assert "must not be filed" in first.text


@pytest.mark.parametrize("cut", range(len(CUTS)))
def test_what_is_cut_keeps_the_start_and_the_last_line_of_the_traceback(cut: int) -> None:
    lines = ("Traceback (most recent call last):", *(f"  {'x' * 2000}" for _ in range(999)), "Boom")
    book = issue_document(replace(CASE, traceback=lines), cut)
    code = next(b for b in section(book, "Describe the bug") if isinstance(b, Code))
    shown = code.text.split("\n")
    most, _, width = CUTS[cut]
    assert len(shown) == most + 1
    assert (shown[0], shown[-1]) == (lines[0], "Boom")
    assert f"... {1001 - most} lines left out ..." in shown
    assert max(map(len, shown)) <= width + 4


def test_a_command_has_its_variables_in_front_and_a_flag_a_line() -> None:
    config = Config.of({"tp-size": "8", "b": True, "a": "x y"}, {"NCCL_X": "1 2"})
    assert shown_command(("python", "-m", "s"), config) == (
        "NCCL_X='1 2' python -m s \\\n  --a 'x y' \\\n  --b \\\n  --tp-size 8"
    )

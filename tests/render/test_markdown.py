"""Markdown of a runbook: readable for people, and safe whatever a log line holds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from triage.core.handover.document import Bullets, Code, Paragraph, Ref, Runbook, Section, Table
from triage.render.markdown import inline, markdown, visible

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])

HOSTILE = [
    "a `code` *star* _under_ [link](http://x) ![img](y)",
    "<script>alert(1)</script> &amp; <!-- --> </td>",
    "| pipe | and \\| escaped \\",
    "```\nrm -rf /\n```",
    "# heading",
    "- item",
    "1. one",
    "1) one",
    "> quote",
    "===",
    "---",
    "~~~~",
    "CUBLAS_STATUS_EXECUTION_FAILED in __init__ and _x",
    "+ plus $math$",
    "\\`tick",
]


def text_of(tokens: list[Token]) -> str:
    """The text that a reader sees; fails on anything but plain text."""
    seen = ""
    for token in tokens:
        if token.type == "inline":
            for child in token.children or []:
                assert child.type in {"text", "text_special"}, child
                seen += child.content
    return seen


def one_paragraph(text: str) -> str:
    tokens = PARSER.parse(inline(text))
    assert [t.type for t in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    return text_of(tokens)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_as_it_is(text: str) -> None:
    assert one_paragraph(text) == " ".join(text.split())


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.sampled_from("ab1 `*_[]()<>|~&$!#+-=.>\\\n\"'"), min_size=1))
def test_any_text_is_shown_as_it_is(text: str) -> None:
    shown = " ".join(text.split())
    if shown:
        assert one_paragraph(text) == shown


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(alphabet=st.sampled_from("ab `*|\\<\n-")), min_size=2, max_size=3))
def test_a_table_keeps_its_cells_apart(cells: list[str]) -> None:
    head = tuple(f"h{n}" for n in range(len(cells)))
    page = markdown(Runbook("t", (Section("s", (Table(head, (tuple(cells),)),)),)))
    tokens = PARSER.parse(page)
    inside = [t for n, t in enumerate(tokens) if n and tokens[n - 1].type == "td_open"]
    assert [text_of([t]) for t in inside] == [" ".join(cell.split()) for cell in cells]


@pytest.mark.parametrize("text", ["plain", "```", "`````\nx", "~~~", "    indented", "</pre>", ""])
def test_a_code_block_cannot_be_left(text: str) -> None:
    page = markdown(Runbook("t", (Section("s", (Code(text, "sh"), Paragraph("after"))),)))
    fence = [t for t in PARSER.parse(page) if t.type == "fence"]
    assert [(t.content, t.info) for t in fence] == [(f"{text}\n", "sh")]
    assert page.endswith("\n\nafter\n")


def test_a_language_cannot_smuggle_markup() -> None:
    page = markdown(Runbook("t", (Section("s", (Code("x", "sh\n```\n# no"),)),)))
    assert "\n```shno\nx\n```\n" in page


def test_control_and_direction_characters_are_made_visible() -> None:
    assert visible("a\x1b[31mred\x00\u202eb\tc\r\nd\re") == "a\ufffd[31mred\ufffd\ufffdb\tc\nd\ne"


def test_a_document_reads_like_one_written_by_hand() -> None:
    page = markdown(
        Runbook(
            title="Runbook: kimi",
            sections=(
                Section("What happened", (Paragraph("It died."), Bullets(("one", "two")))),
                Section(
                    "Proof",
                    (
                        Table(("a", "b"), (("1", "x|y"),)),
                        Code("ls -l", "sh"),
                        Ref("server.log", 7, "the line"),
                        Ref("x.log"),
                    ),
                ),
            ),
        )
    )
    assert page == (
        "# Runbook: kimi\n\n## What happened\n\nIt died.\n\n- one\n- two\n\n## Proof\n\n"
        "| a | b |\n| --- | --- |\n| 1 | x\\|y |\n\n```sh\nls -l\n```\n\n"
        "See server.log, line 7: the line.\n\nSee x.log.\n"
    )

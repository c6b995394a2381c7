"""The page is self-contained, honest about what it lacks, and no log can break it."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from runbook_data import HOSTILE, hostile

from triage.core.handover.document import (
    Bullets,
    Code,
    Column,
    Figure,
    Paragraph,
    Runbook,
    Section,
    Table,
    TrialChart,
    with_text,
)
from triage.core.handover.runbook import build_runbook
from triage.render import html
from triage.render.html import Link, page

VOID = frozenset(["meta", "link", "img", "br", "hr", "input", "path", "rect", "circle", "line"])


class Reader(HTMLParser):
    """Collects tags, attributes and texts, and checks that what is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open, f"{tag} was never opened"
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def book(*blocks: object) -> Runbook:
    return Runbook(title="T", sections=(Section("S", blocks),))  # type: ignore[arg-type]


def test_a_hostile_log_adds_no_element_and_no_attribute() -> None:
    tame = with_text(build_runbook(hostile()), lambda text: text.replace(HOSTILE, "harmless"))
    bad, good = Reader(page(build_runbook(hostile()))), Reader(page(tame))
    assert sorted(set(bad.tags)) == sorted(set(good.tags))
    assert not {"script", "img", "iframe", "object", "link", "base", "form"} & set(bad.tags)
    assert bad.tags.count("style") == 1
    assert not [name for _, name, _ in bad.attributes if name.startswith("on") or name == "style"]
    assert bad.open == []


def test_a_hostile_log_is_shown_as_it_is() -> None:
    shown = "".join(Reader(page(build_runbook(hostile()))).texts)
    assert "<script>window.hacked=1</script>" in shown
    assert "{{ 7*7 }} {% raw %}" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_nothing_is_loaded_from_anywhere_and_only_public_issues_are_links() -> None:
    read = Reader(page(build_runbook(hostile())))
    assert not [a for a in read.attributes if a[1] in ("src", "srcset", "xlink:href", "data")]
    links = {value for _, name, value in read.attributes if name == "href" and value}
    outside = {link for link in links if not link.startswith("#")}
    assert outside == {"https://github.com/sgl-project/sglang/issues/31740"}


def test_the_policy_allows_the_style_sheet_and_nothing_else() -> None:
    text = page(build_runbook(hostile()))
    policy = next(
        value or ""
        for tag, name, value in Reader(text).attributes
        if tag == "meta" and name == "content" and "default-src" in (value or "")
    )
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert "url(http" not in style[1]
    assert "@import" not in style[1]


def test_every_table_has_headings_and_every_picture_words() -> None:
    text = page(build_runbook(hostile()))
    read = Reader(text)
    assert text.count("<table>") == text.count("<thead>") > 5
    assert ("th", "scope", "col") in read.attributes
    assert ("th", "scope", "row") in read.attributes
    labels = [value for tag, name, value in read.attributes if (tag, name) == ("div", "aria-label")]
    assert [label for label in labels if label and label.startswith("Bars of the phases")]
    assert ("html", "lang", "en") in read.attributes
    assert read.tags.count("h1") == read.tags.count("main") == read.tags.count("nav") == 1


def test_what_scrolls_can_be_reached_with_the_keyboard() -> None:
    text = page(build_runbook(hostile()))
    for opening in re.findall(r"<(?:pre|div class=\"scroll)[^>]*>", text):
        assert 'tabindex="0"' in opening, opening


def test_anchors_are_unique_and_lead_to_their_sections() -> None:
    twice = Runbook(
        title="T", sections=tuple(Section("A & B", (Paragraph("x"),)) for _ in range(2))
    )
    read = Reader(page(twice))
    anchors = [value for _, name, value in read.attributes if name == "id" and value]
    assert len(anchors) == len(set(anchors))
    assert {f"#{a}" for a in anchors} >= {
        v for t, n, v in read.attributes if t == "a" and n == "href"
    }


FIGURE = Figure(
    caption="c",
    alt="a",
    chart=TrialChart(
        rows=("x",),
        columns=(Column(number=1, on=frozenset({"x"}), verdict="starts", seconds=1.0),),
    ),
    table=Table(("h",), (("cell",),)),
)


def test_without_the_library_the_table_stands_in_and_the_page_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(html, "can_draw", lambda: False)
    text = page(book(FIGURE), drawn=lambda _chart: "")
    assert "pip install &#39;sglang-triage[report]&#39;" in text
    assert '<svg xmlns="http' not in text
    assert "<details" not in text
    assert '<th scope="row">cell</th>' in text


def test_a_page_without_figures_asks_for_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "can_draw", lambda: False)
    assert "pip install" not in page(book(Paragraph("x")))


def test_a_diff_keeps_its_signs_beside_its_colours() -> None:
    text = page(book(Code("--- a\n+++ b\n-x <y>\n+z", "diff")))
    assert '<span class="line removed">-x &lt;y&gt;\n</span>' in text
    assert '<span class="line added">+z\n</span>' in text
    assert '<span class="line ">--- a\n</span>' in text


def test_the_line_of_a_log_that_counts_is_marked_by_a_sign_too() -> None:
    text = page(book(Code("  1: a\n> 2: b", "log")))
    assert '<span class="line counts">&gt; 2: b\n</span>' in text


def test_a_simulated_document_says_so_in_its_title_and_at_every_heading() -> None:
    simulated = Runbook(
        title="Runbook: x (simulated)",
        sections=(Section("Proof (simulated)", (Bullets(("a",)),)),),
        simulated=True,
    )
    text = page(simulated)
    assert "<title>Runbook: x (simulated)</title>" in text
    assert text.count('<span class="badge">simulated</span>') == 2


def test_pages_of_a_set_lead_to_each_other() -> None:
    text = page(
        book(Table(("cause",), (("boom",),))),
        up=Link(href="index.html", text="All causes"),
        links={"boom": "boom.html"},
    )
    assert '<a href="index.html">All causes</a>' in text
    assert '<a href="boom.html">boom</a>' in text


def test_the_same_document_gives_the_same_bytes() -> None:
    assert page(build_runbook(hostile())) == page(build_runbook(hostile()))

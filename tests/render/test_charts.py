"""Pictures: what they hold, that they mean something without colour, and that no label breaks out."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from runbook_data import FAILED, HOSTILE, JOURNAL, PROBLEM

from triage.core.handover.document import OUTCOMES, Column, PhaseChart, Span, Table, TrialChart
from triage.core.handover.pictures import phase_figure, trial_figure
from triage.render import charts
from triage.render.charts import FILLS, LETTERS, SHORT, draw, phase_spec, trial_spec

NS = "{http://www.w3.org/2000/svg}"
pytestmark = pytest.mark.skipif(
    not charts.can_draw(), reason=f"what draws is not installed: {charts.INSTALL}"
)


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in Xml.fromstring(svg).iter(f"{NS}text")]


def fills(svg: str) -> set[str]:
    return {node.get("fill", "") for node in Xml.fromstring(svg).iter()}


def trials(count: int = 8) -> TrialChart:
    return TrialChart(
        rows=("ep-size 8", "enable-nccl-nvls"),
        columns=tuple(
            Column(
                number=n,
                on=frozenset({"ep-size 8"}),
                verdict=OUTCOMES[n % len(OUTCOMES)],
                seconds=float(n),
                assumed=n == 3,
            )
            for n in range(1, count + 1)
        ),
    )


def test_the_picture_of_trials_has_items_numbers_verdicts_and_seconds() -> None:
    said = texts(draw(trials()))
    assert {"ep-size 8", "enable-nccl-nvls", "1", "3*", "8", *SHORT} <= set(said)
    assert "seconds" in said
    assert "8.0" in said
    assert set(OUTCOMES) <= set(said), "the legend"


def test_each_verdict_has_a_pattern_and_a_word_of_its_own() -> None:
    assert len(set(FILLS)) == len(set(SHORT)) == len(set(LETTERS)) == len(OUTCOMES)
    assert sum(fill.startswith("url(#") for fill in FILLS) == len(FILLS) - 1
    assert set(FILLS) <= fills(draw(trials()))


def test_many_trials_are_marked_by_letters() -> None:
    said = set(texts(draw(trials(30))))
    assert set(LETTERS) <= said
    assert "same" not in said


def test_the_picture_of_phases_says_where_and_on_which_rank_it_ended() -> None:
    figure = phase_figure(FAILED, "x", ended_s=193.0)
    assert figure is not None
    said = texts(draw(figure.chart))
    assert {"config-load", "weight-load", "graph-capture", "fails on TP3"} <= set(said)
    ready = PhaseChart(
        spans=(Span(phase="weight-load", rank="TP0", start=0, end=9),),
        ended="ready",
        at=("weight-load", "TP0", 9.0),
    )
    assert "ready" in texts(draw(ready))


def test_a_hostile_label_stays_text() -> None:
    figure = trial_figure(PROBLEM, JOURNAL, "boom", Table((), ()))
    svg = draw(figure.chart)
    root = Xml.fromstring(svg)
    assert {node.tag.removeprefix(NS) for node in root.iter()} <= charts._TAGS
    assert not [n for node in root.iter() for n in node.attrib if n.startswith("on")]
    assert "<script" not in svg
    assert HOSTILE[:20] in "".join(texts(svg)).replace("…", ""), "cut, and shown as it is"


@pytest.mark.parametrize(
    "svg",
    [
        "<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>",
        "<svg xmlns='http://www.w3.org/2000/svg'><g onclick='x'/></svg>",
        "<svg xmlns='http://www.w3.org/2000/svg'><g style='x'/></svg>",
        "<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'>"
        "<g xlink:href='x'/></svg>",
        "<svg xmlns='http://www.w3.org/2000/svg'><foreignObject/></svg>",
    ],
)
def test_a_picture_with_anything_but_shapes_and_text_is_left_out(svg: str) -> None:
    assert charts._safe(svg) == ""


def test_colours_are_names_of_the_page_so_that_both_themes_have_them() -> None:
    for chart in (trials(), _phases()):
        literal = [
            fill
            for fill in fills(draw(chart))
            if not re.fullmatch(r"|none|var\(--[a-z-]+\)|url\(#[a-z-]+\)", fill)
        ]
        assert literal == []


def test_the_same_chart_gives_the_same_bytes() -> None:
    assert draw(trials()) == draw(trials())
    assert draw(_phases()) == draw(_phases())


def test_specs_load_no_data_from_elsewhere() -> None:
    def urls(part: Any) -> list[str]:
        if isinstance(part, dict):
            return [k for k in part if k == "url"] + [u for v in part.values() for u in urls(v)]
        return [u for one in part for u in urls(one)] if isinstance(part, list) else []

    assert urls(trial_spec(trials())) == urls(phase_spec(_phases())) == []


def _phases() -> PhaseChart:
    figure = phase_figure(FAILED, "x", ended_s=193.0)
    assert figure is not None
    assert isinstance(figure.chart, PhaseChart)
    return figure.chart

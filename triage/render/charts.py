"""Draw a chart of a document as SVG, to stand inside a page.

In:  a PhaseChart or TrialChart. Out: SVG text, or "" where what draws is not installed.
Not: what the chart shows (triage.core.handover.pictures).

Vega-Lite computes scales, axes and legends (the library vl-convert runs it without a network
or a browser). Colours are names of the page's own (`var(--bad)`, `url(#hatch-same)`), so that
one picture serves both themes and print; each verdict has a pattern and a word, too. Text in
the chart may come from a log: Vega escapes it, and `_safe` reads the result again before it
is let into a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any
from xml.etree import ElementTree as Xml

from triage.core.advice.values import Advice
from triage.core.handover.document import OUTCOMES, Column, PhaseChart, Span, TrialChart
from triage.core.printable import visible
from triage.core.units import format_seconds
from triage.render.advice_figure import figure_svg

INSTALL = "pip install 'sglang-triage[report]'"
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
WIDTH = 720  # pixels of a whole picture, at which its text has its nominal size
SCALE = 1.15  # of that size, where the page has room
BROAD = 520  # pixels; a broader picture is scrolled on a narrow page, not made unreadable
FILLS = (
    "var(--good-fill)",
    "url(#hatch-same)",
    "url(#hatch-other)",
    "url(#dots-none)",
    "url(#lines-pass)",
)
SHORT = ("starts", "same", "other", "?", "passes")
LETTERS = ("S", "F", "O", "?", "P")
_TEXT = 13
_CROSS = "M-1,-1L1,1M1,-1L-1,1"
_FLAG = "M-1,-1L1,0L-1,1Z"
_TAGS = frozenset(["svg", "g", "path", "text", "tspan", "line", "rect", "title", "desc"])
_SVG = "{http://www.w3.org/2000/svg}"

Spec = dict[str, Any]


def can_draw() -> bool:
    """Whether the library that draws is installed (the extra `report`)."""
    return find_spec("vl_convert") is not None


def draw(chart: PhaseChart | TrialChart | Advice) -> str:
    """The chart as an `<svg>` element without style, script, link or identifier of its own."""
    if not can_draw():
        return ""
    import vl_convert

    try:
        if isinstance(chart, Advice):
            return _safe(figure_svg(chart) or "")
        spec = phase_spec(chart) if isinstance(chart, PhaseChart) else trial_spec(chart)
        return _safe(vl_convert.vegalite_to_svg(spec, show_warnings=False))
    except ValueError:  # the library's own for whatever it cannot draw; the table stays
        return ""


def _safe(svg: str) -> str:
    """The picture if it holds nothing but shapes and text, else nothing; its labels go.

    Each mark's label repeats what the page says in its table, and a reader that
    speaks takes the picture as one, with its description.
    """
    Xml.register_namespace("", _SVG.strip("{}"))
    if not svg:
        return ""
    root = Xml.fromstring(svg)  # noqa: S314  of the library; expat knows no external entity
    for node in root.iter():
        if node.tag.removeprefix(_SVG) not in _TAGS:
            return ""
        for name in list(node.attrib):
            if name.startswith("on") or "href" in name or name == "style":
                return ""
            if name.startswith("aria-") or name in ("role", "class"):
                del node.attrib[name]
    width, height = (float(root.get(name, "1")) for name in ("width", "height"))
    root.attrib.pop("version", None)
    root.set("viewBox", f"0 0 {width:g} {height:g}")
    root.set("width", f"{width * SCALE:.0f}")
    root.set("height", f"{height * SCALE:.0f}")
    root.set("class", "chart broad" if width > BROAD else "chart")
    return Xml.tostring(root, encoding="unicode")


def _frame(spec: Spec) -> Spec:
    axis = {
        "labelColor": "var(--fg)", "titleColor": "var(--fg)", "domainColor": "var(--line)",
        "tickColor": "var(--line)", "gridColor": "var(--grid)", "labelFontSize": _TEXT,
        "titleFontSize": _TEXT, "titleFontWeight": "normal", "labelLimit": 260,
    }  # fmt: skip
    legend = {
        "labelColor": "var(--fg)", "titleColor": "var(--fg)", "labelFontSize": _TEXT,
        "symbolStrokeWidth": 1, "symbolSize": 200,
    }  # fmt: skip
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": None,
        "padding": 4,
        **spec,
        "config": {
            "font": FONT,
            "axis": axis,
            "legend": legend,
            "view": {"stroke": None},
            "text": {"fill": "var(--fg)", "fontSize": _TEXT},
        },
    }


def trial_spec(chart: TrialChart) -> Spec:
    """Rows of items over columns of trials; below the verdict in a word, and a bar of seconds."""
    count = max(len(chart.columns), 1)
    step = max(14, min(64, 440 // count))
    numbers = [_name(column) for column in chart.columns]
    items = [visible(row) for row in chart.rows]
    cells = [
        {"trial": _name(c), "item": visible(row), "on": row in c.on}
        for c in chart.columns
        for row in chart.rows
    ]
    words = SHORT if step >= 46 else LETTERS  # noqa: PLR2004  pixels that the longest word takes
    ends = [
        {
            "trial": _name(c),
            "verdict": c.verdict,
            "word": dict(zip(OUTCOMES, words, strict=True))[c.verdict],
            "seconds": c.seconds,
            "said": f"{c.seconds:.0f}" if c.seconds >= 10 else f"{c.seconds:.1f}",  # noqa: PLR2004
        }
        for c in chart.columns
    ]
    across = {"field": "trial", "type": "ordinal", "sort": numbers, "title": "trial"}
    axis = {"orient": "top", "labelAngle": 0, "ticks": False, "domain": False, "titlePadding": 8}
    hidden = {**across, "axis": None}
    down = {"field": "item", "type": "nominal", "sort": items, "title": None}
    plain = {"ticks": False, "domain": False, "labelPadding": 8, "labelLimit": 260}
    present = [word for word in OUTCOMES if any(c.verdict == word for c in chart.columns)]
    fill = {
        "field": "verdict",
        "type": "nominal",
        "scale": {
            "domain": present,
            "range": [dict(zip(OUTCOMES, FILLS, strict=True))[word] for word in present],
        },
        "legend": {"orient": "bottom", "title": None, "direction": "horizontal"},
    }
    box = {"type": "rect", "stroke": "var(--bg)", "strokeWidth": 2}
    matrix = {
        "width": {"step": step},
        "height": {"step": 26},
        "data": {"values": cells},
        "layer": [
            {
                "mark": {**box, "fill": "var(--cell)"},
                "encoding": {"x": {**across, "axis": axis}, "y": {**down, "axis": plain}},
            },
            {
                "transform": [{"filter": "datum.on"}],
                "mark": {
                    "type": "point", "shape": "circle", "filled": True, "size": 110,
                    "fill": "var(--fg)", "stroke": "var(--bg)", "strokeWidth": 1.5, "opacity": 1,
                },
                "encoding": {"x": {**across, "axis": axis}, "y": {**down, "axis": plain}},
            },
        ],
    }  # fmt: skip
    verdicts = {
        "width": {"step": step},
        "height": 24,
        "data": {"values": ends},
        "layer": [
            {"mark": box, "encoding": {"x": hidden, "fill": fill}},
            {
                "mark": {
                    "type": "text", "stroke": "var(--bg)", "strokeWidth": 4,
                    "strokeJoin": "round", "fontWeight": "bold",
                },
                "encoding": {"x": hidden, "text": {"field": "word"}},
            },
            {
                "mark": {"type": "text", "fontWeight": "bold"},
                "encoding": {"x": hidden, "text": {"field": "word"}},
            },
        ],
    }  # fmt: skip
    seconds = {
        "field": "seconds",
        "type": "quantitative",
        "title": "seconds",
        "axis": {"tickCount": 3, "grid": False},
    }
    bars = {
        "width": {"step": step},
        "height": 70,
        "data": {"values": ends},
        "layer": [
            {
                "mark": {"type": "bar", "fill": "var(--bar)", "width": {"band": 0.6}},
                "encoding": {"x": hidden, "y": seconds},
            },
            {
                "mark": {"type": "text", "dy": -8, "fontSize": 12 if step >= 30 else 9},  # noqa: PLR2004
                "encoding": {"x": hidden, "y": seconds, "text": {"field": "said"}},
            },
        ],
    }
    return _frame({"vconcat": [matrix, verdicts, bars], "spacing": 6})


def _name(column: Column) -> str:
    return f"{column.number}{'*' * column.assumed}{'°' * (not column.launched)}"


def phase_spec(chart: PhaseChart) -> Spec:
    """A row for each phase, in it a lane for each rank; where it ended a cross or a flag."""
    phases = list(dict.fromkeys(span.phase for span in chart.spans))
    ranks = list(dict.fromkeys(span.rank for span in chart.spans))
    most = max((span.end for span in chart.spans), default=1.0) or 1.0
    lane = max(3, 18 // max(len(ranks), 1))
    failed = chart.at[0] if chart.at and chart.ended != "ready" else ""

    def ends_in(phase: str) -> bool:
        return chart.at is not None and chart.at[0] == phase

    values = [
        {
            "phase": s.phase, "rank": s.rank, "start": s.start, "end": s.end,
            "kind": "bad" if s.phase == failed else "bar",
        }
        for s in chart.spans
    ]  # fmt: skip
    down = {"field": "phase", "type": "nominal", "sort": phases, "title": None}
    axis = {"ticks": False, "domain": False, "grid": False, "labelPadding": 8}
    across = {
        "type": "quantitative",
        "title": "seconds",
        "scale": {"domain": [0, most * 1.14], "nice": False},
        "axis": {"grid": True, "tickCount": 8},
    }
    offset = {"field": "rank", "type": "nominal", "sort": ranks}
    shared = {"y": {**down, "axis": axis}, "yOffset": offset}
    start = {"x": {**across, "field": "start"}, **shared}
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "height": {"band": 0.86}},
            "encoding": {
                **start,
                "x2": {"field": "end"},
                "fill": {
                    "field": "kind",
                    "type": "nominal",
                    "scale": {
                        "domain": ["bar", "bad"],
                        "range": ["var(--bar)", "url(#hatch-same)"],
                    },
                    "legend": None,
                },
            },
        },
        # A phase of no measurable length is still there.
        {
            "mark": {"type": "tick", "thickness": 2, "color": "var(--fg)", "band": 0.86},
            "encoding": start,
        },
        {
            "data": {"values": _lengths(chart.spans, [p for p in phases if not ends_in(p)])},
            "mark": {"type": "text", "align": "left", "dx": 8},
            "encoding": {
                "x": {**across, "field": "end"},
                "y": {**down, "axis": axis},
                "text": {"field": "said"},
            },
        },
    ]
    if chart.at:
        layers.append(_end(chart.at, chart.ended, across, {**down, "axis": axis}))
    height = max(24, lane * len(ranks) + 8)
    return _frame({
        "width": WIDTH - 190,
        "height": {"step": height, "for": "position"},
        "data": {"values": values},
        "layer": layers,
        "resolve": {"scale": {"x": "shared", "y": "shared"}},
    })  # fmt: skip


def _lengths(spans: Sequence[Span], phases: Sequence[str]) -> list[Mapping[str, object]]:
    rows: list[Mapping[str, object]] = []
    for phase in phases:
        own = [span for span in spans if span.phase == phase]
        rows.append({
            "phase": phase,
            "end": max(span.end for span in own),
            "said": format_seconds(max(span.end - span.start for span in own)),
        })  # fmt: skip
    return rows


def _end(at: tuple[str, str, float], ended: str, across: Spec, down: Spec) -> Spec:
    phase, rank, second = at
    good = ended == "ready"
    word = {"ready": "ready", "hung": f"halts on {rank}"}.get(ended, f"fails on {rank}")
    value = [{"phase": phase, "second": second, "word": visible(word)}]
    place = {"x": {**across, "field": "second"}, "y": down}
    text = {"type": "text", "align": "right", "dx": -12, "fontWeight": "bold"}
    halo = {"stroke": "var(--bg)", "strokeWidth": 4, "strokeJoin": "round"}
    colour = "var(--good)" if good else "var(--bad)"
    words: tuple[Spec, ...] = ({"mark": {**text, **halo}}, {"mark": {**text, "fill": colour}})
    return {
        "data": {"values": value},
        "layer": [
            {
                "mark": {
                    "type": "point", "shape": _FLAG if good else _CROSS, "size": 140,
                    "stroke": colour, "strokeWidth": 3, "fill": colour if good else None,
                    "opacity": 1,
                },
                "encoding": place,
            },
            *({**said, "encoding": {**place, "text": {"field": "word"}}} for said in words),
        ],
    }  # fmt: skip

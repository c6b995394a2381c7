"""The figure of an advice: throughput over concurrency for each layout, as SVG.

In:  Advice. Out: SVG text that stands alone or within a page, or None without what draws.
Not: the curves (triage.core.advice.gains).

Vega-Lite draws (the library vl-convert runs it without a network or a browser). Each line
has a colour, a dash and a shape of its own, so that it can be told without colours.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any
from xml.sax.saxutils import escape

from triage.core.advice.values import Advice

INSTALL = "pip install 'sglang-triage[report]'"
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
# Of Okabe and Ito: told apart by people who see few colours.
COLOURS = ("#0072b2", "#009e73", "#d55e00", "#cc79a7")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
SHAPES = ("circle", "square", "triangle-up", "diamond")
_TEXT = 13
_WIDTH = 600


def can_draw() -> bool:
    """Whether the library that draws is installed (the extra `report`)."""
    return find_spec("vl_convert") is not None


def figure_svg(advice: Advice) -> str | None:
    """The picture; None if the library is missing or no layout fits in memory."""
    if not can_draw() or not any(curve.points for curve in advice.curves):
        return None
    import vl_convert

    made = str(vl_convert.vegalite_to_svg(figure_spec(advice), show_warnings=False))
    end = made.index(">") + 1
    return f"{made[:end]}<title>{escape(figure_caption(advice))}</title>{made[end:]}"


def figure_caption(advice: Advice) -> str:
    """What the picture shows and what it does not, in two sentences."""
    about = advice.situation
    measured = " Crosses are reported figures." if advice.comparisons else ""
    return (
        f"{about.model.name} on {about.node.count}x {about.node.gpu.name},"
        f" {about.input_tokens:.0f} tokens in and {about.output_tokens:.0f} out, without"
        f" speculation; modelled from published constants, nothing was launched for it; below,"
        f" relative to {advice.curves[0].name}.{measured}"
    )


def figure_spec(advice: Advice) -> dict[str, Any]:
    """The picture in the words of Vega-Lite."""
    names = [curve.name for curve in advice.curves]
    rows: list[dict[str, Any]] = [
        {"layout": curve.name, "sequences": c, "rate": round(value, 1)}
        for curve in advice.curves
        for c, value in curve.points
    ]
    figures: list[dict[str, Any]] = [
        {
            "sequences": one.reported.concurrency,
            "rate": one.reported.tokens_per_s,
            "said": "with speculation" if one.speculation else "without speculation",
            "above": one.speculation,
        }
        for one in advice.comparisons
    ]
    counts = sorted({row["sequences"] for row in rows})
    rates = [row["rate"] for row in (*rows, *figures)]
    decades = [10**n for n in range(10) if min(rates) / 10 <= 10**n <= max(rates)]
    x = {
        "field": "sequences",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "domain": [counts[0], counts[-1]], "nice": False},
        "axis": {"values": counts, "labelExpr": "format(datum.value, ',')", "grid": False},
        "title": "sequences at once",
    }
    y = {
        "field": "rate",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [min(rates) * 0.8, max(rates) * 1.25], "nice": False},
        "axis": {"values": decades, "format": ",", "gridColor": "#8884"},
        "title": "output tokens a second",
    }

    def by(channel: str, values: object) -> dict[str, Any]:
        return {
            "field": "layout",
            "type": "nominal",
            "scale": {"domain": names, "range": list(values)},  # type: ignore[call-overload]
            "legend": {"title": None, "orient": "bottom", "symbolSize": 120},
        }

    colours = {
        "color": by("color", COLOURS),
        "strokeDash": by("strokeDash", DASHES),
        "shape": by("shape", SHAPES),
    }
    line = {"type": "line", "strokeWidth": 2, "point": {"size": 45, "filled": True}}
    reported = {"type": "point", "shape": "cross", "size": 130, "filled": True,
                "color": "currentColor", "opacity": 1}  # fmt: skip
    words = {"type": "text", "align": "left", "dx": -5, "fontSize": _TEXT - 2,
             "color": "currentColor"}  # fmt: skip
    throughput = {
        "width": _WIDTH,
        "height": 300,
        "layer": [
            {"data": {"values": rows}, "mark": line, "encoding": {"x": x, "y": y, **colours}},
            {"data": {"values": figures}, "mark": reported, "encoding": {"x": x, "y": y}},
            *(
                {
                    "data": {"values": [f for f in figures if f["above"] is above]},
                    "mark": {**words, "dy": -13 if above else 16},
                    "encoding": {"x": x, "y": y, "text": {"field": "said"}},
                }
                for above in (True, False)
            ),
        ],
    }
    first = dict(advice.curves[0].points)
    ratios = [
        {**row, "ratio": round(row["rate"] / first[row["sequences"]], 4)}
        for row in rows
        if row["sequences"] in first
    ]
    share = {
        "field": "ratio",
        "type": "quantitative",
        "scale": {"zero": False},
        "axis": {"format": ".1f", "tickCount": 5, "gridColor": "#8884"},
        "title": f"relative to {names[0]}",
    }
    relative = {
        "width": _WIDTH,
        "height": 150,
        "data": {"values": ratios},
        "mark": line,
        "encoding": {"x": x, "y": share, **colours},
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": None,
        "padding": 4,
        "vconcat": [throughput, relative] if ratios else [throughput],
        "config": {
            "font": FONT,
            "axis": {
                "labelColor": "currentColor", "titleColor": "currentColor",
                "domainColor": "currentColor", "tickColor": "currentColor",
                "labelFontSize": _TEXT, "titleFontSize": _TEXT, "titleFontWeight": "normal",
            },
            "legend": {"labelColor": "currentColor", "labelFontSize": _TEXT},
            "view": {"stroke": None},
        },
    }  # fmt: skip

"""Draw effects as ratios with intervals, and as means by two factors."""

from __future__ import annotations

from collections.abc import Sequence

from scipy import special

from wattwire.analysis.charts import Chart
from wattwire.report.figures.style import (
    GRID,
    MUTED,
    NAMES_PX,
    PALETTE,
    POINTS,
    WIDTH_PX,
    Spec,
    colour,
    dash,
    finish,
    highlight,
    hint,
    in_panels,
    nominal,
    number,
    panel_width,
    shape,
)

MEAN_RUNS_MIN = 3
LEVEL = 0.95
DEGREES_MAX = 400
"""Largest number of degrees of freedom in the table. Its quantile also serves larger numbers, with
an error of at most 0.03 %.
"""


def ratios_chart(chart: Chart, *_: str) -> Spec:
    """Return a chart of ratios with intervals.

    Fields of the points: name, response, ratio, low, high, one, order. With a margin, the points
    also have margin_low and margin_high.
    """
    names = list(dict.fromkeys(point["name"] for point in chart.points))
    y = nominal("name", None, names) | {"axis": {"labelLimit": 260, "minExtent": NAMES_PX}}
    band, line, whisker = (
        {"type": "rect", "color": GRID, "opacity": 0.5},
        {"type": "rule", "color": MUTED, "strokeDash": [4, 3]},
        {"type": "rule", "strokeWidth": 2.2, "color": PALETTE[0]},
    )
    title = "ratio to the baseline (log scale, 1 = the same)"
    layers = [
        # The reference line uses the same points, because facets drop layers with other data.
        {"mark": line, "encoding": {"x": {"field": "one", "type": "quantitative"}}},
        {
            "mark": whisker,
            "encoding": {
                "x": {"field": "low", "type": "quantitative"},
                "x2": {"field": "high"},
                "y": y,
            },
        },
        {
            "mark": {
                "type": "point",
                "filled": True,
                "size": 75,
                "opacity": 1,
                "color": PALETTE[0],
            },
            "encoding": {
                "x": number("ratio", title, padding=14, ticks=8),
                "y": y,
                "tooltip": [
                    hint("name", "contrast", None),
                    hint("response", None, None),
                    *(hint(field, None, ".3~r") for field in ("ratio", "low", "high")),
                ],
            },
        },
    ]
    if any("margin_high" in point for point in chart.points):
        edges = {
            "x": {"field": "margin_low", "type": "quantitative"},
            "x2": {"field": "margin_high"},
        }
        layers.insert(0, {"mark": band, "encoding": edges})
    header = {"labelAngle": 0, "labelAnchor": "start", "labelOrient": "top", "labelPadding": 2}
    responses = list(dict.fromkeys(point["response"] for point in chart.points))
    rows = {
        "data": {"name": POINTS},
        "facet": {"row": nominal("response", None, responses) | {"header": header}},
        "spec": {"layer": layers, "width": WIDTH_PX - NAMES_PX - 90, "height": {"step": 22}},
        "resolve": {"scale": {"y": "independent"}},
    }
    return finish(rows, chart.points)


def interaction_chart(chart: Chart, x_title: str, y_title: str) -> Spec:
    """Return a line chart of means by two factors.

    Fields of the points: value, colour, across, panel. Means are geometric on a log scale. Error
    bars are 95 % t intervals of means over at least MEAN_RUNS_MIN runs.
    """
    selection, opacity = highlight()
    domain, colour_title, panels = chart.colours, chart.colour_title, chart.panels
    x = nominal("across", x_title, chart.across) | {
        "axis": {"labelAngle": 0, "labelOverlap": True, "labelLimit": 120},
        "scale": {"type": "band", "padding": 0.1},
    }
    y = number("mean", y_title, chart.y_scale)
    shared = {
        "x": x,
        "color": colour(colour_title, domain),
        "opacity": opacity,
        # The offset separates intervals that would otherwise overlap.
        "xOffset": nominal("colour", None, domain) | {"scale": {"type": "point", "padding": 3}},
    }
    tooltip = [
        hint("colour", colour_title, None),
        hint("across", x_title, None),
        hint("runs", "runs", ",d"),
        hint("mean", "mean"),
        hint("low", "95 % from"),
        hint("high", "to"),
    ]
    panel = {
        "transform": mean_steps(chart.y_scale, ["colour", "across", "panel"]),
        "layer": [
            {
                "mark": {"type": "line", "strokeWidth": 1.7},
                "encoding": shared | {"y": y, "strokeDash": dash(colour_title, domain)},
            },
            {
                "transform": [{"filter": f"datum.runs >= {MEAN_RUNS_MIN}"}],
                "mark": {"type": "rule", "strokeWidth": 1.5},
                "encoding": shared | {"y": y | {"field": "low"}, "y2": {"field": "high"}},
            },
            {
                "params": [selection],
                "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
                "encoding": shared
                | {"y": y, "shape": shape(colour_title, domain), "tooltip": tooltip},
            },
        ],
        "width": panel_width(len(panels), chart.per_row),
        "height": 190 if len(panels) <= chart.per_row else 150,
    }
    return finish(in_panels(panel, panels, chart.per_row), chart.points)


def mean_steps(scale: str, groups: Sequence[str]) -> list[Spec]:
    """Return the transforms that aggregate runs to a mean with 95 % t limits and a run count."""
    log = f"('{scale}' === 'log')"
    quantiles = [
        {"degrees": degrees, "t": round(float(special.stdtrit(degrees, (1 + LEVEL) / 2)), 4)}
        for degrees in [*range(MEAN_RUNS_MIN - 1, 61), *range(70, DEGREES_MAX + 1, 10)]
    ]
    return [
        {"filter": f"isValid(datum.value) && (!{log} || datum.value > 0)"},
        {"calculate": f"{log} ? log(datum.value) : datum.value", "as": "term"},
        {
            "aggregate": [
                {"op": "mean", "field": "term", "as": "middle"},
                {"op": "stdev", "field": "term", "as": "spread"},
                {"op": "count", "as": "runs"},
            ],
            "groupby": list(groups),
        },
        # Between rows of the table, the next lower degrees of freedom give a conservative interval.
        {
            "calculate": "datum.runs <= 61 ? datum.runs - 1 : "
            f"min({DEGREES_MAX}, 10 * floor((datum.runs - 1) / 10))",
            "as": "degrees",
        },
        {
            "lookup": "degrees",
            "from": {"data": {"values": quantiles}, "key": "degrees", "fields": ["t"]},
        },
        {"calculate": "datum.t * datum.spread / sqrt(datum.runs)", "as": "half"},
        *(
            {"calculate": f"{log} ? exp({term}) : {term}", "as": name}
            for name, term in (
                ("mean", "datum.middle"),
                ("low", "(datum.middle - datum.half)"),
                ("high", "(datum.middle + datum.half)"),
            )
        ),
    ]

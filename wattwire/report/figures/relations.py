"""Draw one response against another, and a response over two factors."""

from __future__ import annotations

from wattwire.analysis.charts import Chart
from wattwire.report.figures.style import (
    HEAT,
    INK,
    NAMES_PX,
    Spec,
    colour,
    finish,
    highlight,
    hint,
    in_panels,
    nominal,
    number,
    panel_width,
    plain_number,
    shape,
    short_number,
)

CELLS_WITH_NUMBERS_MAX = 60


def scatter_chart(chart: Chart, x_title: str, y_title: str) -> Spec:
    """Return a scatter plot of runs with treatment medians.

    Fields of the points: x, y, colour, treatment, panel, run.
    """
    selection, opacity = highlight(0.45, 0.05)
    valid_only = {"filter": "isValid(datum.x) && isValid(datum.y)"}
    shared = {
        "color": colour(chart.colour_title, chart.colours),
        "shape": shape(chart.colour_title, chart.colours),
    }
    tooltip = [hint("treatment", None, None), hint("x", x_title), hint("y", y_title)]
    medians = {
        "aggregate": [
            {"op": "median", "field": "x", "as": "x_median"},
            {"op": "median", "field": "y", "as": "y_median"},
            {"op": "count", "as": "runs"},
        ],
        "groupby": ["treatment", "colour", "panel"],
    }
    panel = {
        "transform": [valid_only],
        "layer": [
            {
                "params": [selection],
                "mark": {"type": "point", "filled": True, "size": 22, "crowded": 10, "opacity": 1},
                "encoding": {
                    "x": number("x", x_title, chart.x_scale),
                    "y": number("y", y_title, chart.y_scale),
                    **shared,
                    "fillOpacity": opacity,
                    "tooltip": [hint("run", None, None), *tooltip],
                },
            },
            {
                "transform": [medians],
                "mark": {
                    "type": "point", "filled": True, "size": 90, "opacity": 1,
                    "stroke": INK, "strokeWidth": 1.2,
                },
                "encoding": {
                    "x": {"field": "x_median", "type": "quantitative"},
                    "y": {"field": "y_median", "type": "quantitative"},
                    **shared,
                    "tooltip": [
                        hint("treatment", None, None), hint("runs", "runs", ",d"),
                        hint("x_median", f"median {x_title}"),
                        hint("y_median", f"median {y_title}"),
                    ],
                },
            },
        ],
        "width": panel_width(len(chart.panels), chart.per_row),
        "height": 300 if len(chart.panels) < 2 else 200,
    }  # fmt: skip
    return finish(in_panels(panel, chart.panels, chart.per_row), chart.points)


def heat_chart(chart: Chart, x_title: str, y_title: str) -> Spec:
    """Return a heat map of a response over two factors, those across and on colour.

    Fields of the points: value, across, down, panel. A cell shows the mean of its runs, which is
    geometric on a log scale. The number is printed if it fits.
    """
    x = nominal("across", x_title, chart.across) | {"axis": {"labelAngle": 0, "labelOverlap": True}}
    y = nominal("down", chart.colour_title, chart.colours) | {"axis": {"labelLimit": NAMES_PX}}
    shade = {
        "field": "mean",
        "type": "quantitative",
        "title": y_title,
        "scale": {"type": chart.y_scale, "scheme": HEAT, "zero": False, "nice": False},
        "legend": {
            "gradientLength": 220, "tickCount": 4, "labelExpr": plain_number("datum.value"),
            "titleLimit": 400,
        },
    }  # fmt: skip
    tooltip = [
        hint("across", x_title, None),
        hint("down", chart.colour_title, None),
        hint("mean", y_title),
        hint("runs", "runs", ",d"),
    ]
    layers: list[Spec] = [
        {
            "mark": {"type": "rect", "stroke": "white"},
            "encoding": {"color": shade, "tooltip": tooltip},
        }
    ]
    cells = len(chart.across) * len(chart.colours) * max(1, len(chart.panels))
    if cells <= CELLS_WITH_NUMBERS_MAX:
        layers.append(_number_layer())
    width = panel_width(len(chart.panels), chart.per_row, NAMES_PX)
    panel = {
        "transform": _cell_means(chart.y_scale),
        "layer": layers,
        "encoding": {"x": x, "y": y},
        "width": min(width, 90 * max(1, len(chart.across))),
        "height": {"step": 30},
    }
    return finish(in_panels(panel, chart.panels, chart.per_row), chart.points)


def _cell_means(scale: str) -> list[Spec]:
    """Return the transforms that aggregate runs to cells.

    They compute mean, run count, printed number and relative value.
    """
    log = f"('{scale}' === 'log')"
    return [
        {"filter": f"isValid(datum.value) && (!{log} || datum.value > 0)"},
        {"calculate": f"{log} ? log(datum.value) : datum.value", "as": "term"},
        {
            "aggregate": [
                {"op": "mean", "field": "term", "as": "middle"},
                {"op": "count", "as": "runs"},
            ],
            "groupby": ["across", "down", "panel"],
        },
        {"calculate": f"{log} ? exp(datum.middle) : datum.middle", "as": "mean"},
        {"calculate": "1", "as": "every"},
        {
            "joinaggregate": [
                {"op": "min", "field": "middle", "as": "least"},
                {"op": "max", "field": "middle", "as": "most"},
            ],
            "groupby": ["every"],
        },
        {
            "calculate": "datum.most > datum.least ? "
            "(datum.middle - datum.least) / (datum.most - datum.least) : 0",
            "as": "height",
        },
        {"calculate": short_number("datum.mean"), "as": "label"},
    ]


def _number_layer() -> Spec:
    """Return the layer of cell numbers, which are dark on light cells and light on dark cells."""
    return {
        "mark": {"type": "text", "fontSize": 12},
        "encoding": {
            "text": {"field": "label", "type": "nominal"},
            "color": {
                "condition": {"test": "datum.height > 0.55", "value": "#000000"},
                "value": "#ffffff",
            },
        },
    }

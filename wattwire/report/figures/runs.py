"""Draw runs as dots, boxes, violins and curves, and in run order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wattwire.analysis.charts import BOX_RUNS_MIN, VIOLIN_RUNS_MIN, Chart
from wattwire.report.figures.fitting import LETTER_PX
from wattwire.report.figures.style import (
    GAP_PX,
    INK,
    MUTED,
    NAMES_PX,
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

ROW_PX = 40
NAMES_PX_MAX = 320
"""Maximum width of row names in px. Longer names are truncated, but not in the tooltip."""
SPREAD = 11
BY_COLOUR = {"groupby": ["colour", "panel"]}


@dataclass(frozen=True)
class Rows:
    """Rows of a chart, with ordered names, the name field of a point, and the width of names.

    In a template, `titles` and `names_px` are placeholders that begin with @.
    """

    titles: Sequence[str]
    field: str = "row"
    names_px: int | str = NAMES_PX

    @classmethod
    def of_chart(cls, chart: Chart) -> Rows:
        """Return the rows of a chart with space for their names, or a row per colour."""
        if not chart.rows:
            return cls(chart.colours, "colour")
        longest_px = LETTER_PX * max(map(len, chart.rows)) + GAP_PX
        return cls(chart.rows, "row", int(min(NAMES_PX_MAX, max(NAMES_PX, longest_px))))

    @property
    def channel(self) -> Spec:
        return nominal(self.field, None, self.titles)

    @property
    def group(self) -> Spec:
        return {"groupby": [self.field, "panel"]}


TREATMENT_ROWS = Rows(["@rows"], "row", "@room")
"""Placeholder rows of a template, which explore.js replaces."""


def runs_chart(chart: Chart, x_title: str, *_: str) -> Spec:
    """Return a chart that shows runs as dots and the geometric mean of each group as a bar.

    Fields of the points: value, colour, panel, centre, treatment, run.
    """
    rows = Rows(chart.colours, "colour")
    centre = {
        "transform": [{"aggregate": [_group_value("centre")], **rows.group}],
        "mark": {"type": "tick", "thickness": 2.5, "color": INK, "size": 24},
        "encoding": {
            "x": {"field": "centre", "type": "quantitative", "title": x_title},
            "y": rows.channel,
            "tooltip": [hint("centre", "geometric mean")],
        },
    }
    layers = [_dots(chart, rows, x_title), centre]
    return finish(_rows_in_panels(layers, rows, chart), chart.points)


def box_chart(chart: Chart, x_title: str, _: str = "", rows: Rows | None = None) -> Spec:
    """Return a chart of box plots with every run as a dot.

    Fields of the points: value, colour, panel, row, treatment, run. There is a box per row of the
    chart, or per colour without rows. `rows` replaces these in a template. Boxes show
    quartiles. Whiskers extend to the lowest and the highest run, so no run is marked as an outlier.
    A row with fewer than BOX_RUNS_MIN runs shows only dots.
    """
    rows = rows or Rows.of_chart(chart)
    quartiles = [
        {
            "aggregate": [
                {"op": op, "field": "value", "as": op}
                for op in ("min", "q1", "median", "q3", "max")
            ]
            + [{"op": "count", "as": "runs"}, {"op": "min", "field": "colour", "as": "colour"}],
            **rows.group,
        },
        {"filter": f"datum.runs >= {BOX_RUNS_MIN}"},
    ]
    y = rows.channel
    tint = colour(chart.colour_title, chart.colours) | {"legend": None}

    def span(mark: Spec, low: str, high: str, **more: Spec) -> Spec:
        ends = {"x": {"field": low, "type": "quantitative"}, "x2": {"field": high}}
        return {"transform": quartiles, "mark": mark, "encoding": {**ends, "y": y, **more}}

    tooltip = [hint("runs", "runs", ",d"), hint("median"), hint("q1", "quartile"), hint("q3", "to")]
    box = {"type": "bar", "size": 24, "fillOpacity": 0.2, "stroke": INK, "strokeWidth": 1.1}
    layers = [
        _dots(chart, rows, x_title, size=26),
        span({"type": "rule", "color": INK, "strokeWidth": 1.1}, "min", "max"),
        span(box, "q1", "q3", color=tint),
        {
            "transform": quartiles,
            "mark": {"type": "tick", "thickness": 2.5, "color": INK, "size": 24},
            "encoding": {
                "x": {"field": "median", "type": "quantitative"},
                "y": y,
                "tooltip": tooltip,
            },
        },
    ]
    return finish(_rows_in_panels(layers, rows, chart), chart.points)


def violin_chart(chart: Chart, x_title: str, _: str = "", rows: Rows | None = None) -> Spec:
    """Return a chart of violin plots with every run as a dot.

    Points and `rows` are as in `box_chart`, with a violin for each box. The density is a Gaussian
    kernel estimate with Scott's bandwidth on the displayed scale, cut at the lowest and the highest
    run. All violins have the same width. A row with fewer than VIOLIN_RUNS_MIN runs shows only
    dots.
    """
    rows = rows or Rows.of_chart(chart)
    log = f"('{chart.x_scale}' === 'log')"
    density_steps = [
        {"calculate": f"{log} ? log(datum.value) : datum.value", "as": "term"},
        {
            "joinaggregate": [
                {"op": "count", "as": "runs"},
                {"op": "min", "field": "term", "as": "low"},
                {"op": "max", "field": "term", "as": "high"},
            ],
            **rows.group,
        },
        {"filter": f"datum.runs >= {VIOLIN_RUNS_MIN} && datum.high > datum.low"},
        {
            "density": "term",
            "groupby": [rows.field, "colour", "panel"],
            "steps": 80,
            "resolve": "independent",
            "as": ["at", "density"],
        },
        {"joinaggregate": [{"op": "max", "field": "density", "as": "top"}], **rows.group},
        {"calculate": f"{log} ? exp(datum.at) : datum.at", "as": "value"},
        {"calculate": "datum.density / datum.top", "as": "width"},
    ]
    violin = {
        "transform": density_steps,
        # A trail mark is a line of varying width, which draws a violin along its row.
        "mark": {"type": "trail", "opacity": 1, "fillOpacity": 0.3},
        "encoding": {
            "x": {"field": "value", "type": "quantitative"},
            "y": rows.channel,
            "order": {"field": "value", "type": "quantitative"},
            "size": {
                "field": "width",
                "type": "quantitative",
                "legend": None,
                "scale": {"domain": [0, 1], "range": [0, ROW_PX - 4]},
            },
            "color": colour(chart.colour_title, chart.colours) | {"legend": None},
        },
    }
    layers = [violin, _dots(chart, rows, x_title, size=12)]
    return finish(_rows_in_panels(layers, rows, chart), chart.points)


def runs_ecdf_chart(chart: Chart, x_title: str, *_: str) -> Spec:
    """Return a chart of the runs' ECDFs. Fields of the points: value, colour, panel."""
    selection, opacity = highlight()
    share = {"field": "share", "type": "quantitative", "title": "share of runs"}
    percent = {"tickCount": 4, "labelExpr": "format(100 * datum.value, '~g') + ' %'"}
    panel = {
        "transform": [
            {
                "window": [{"op": "cume_dist", "as": "share"}],
                "sort": [{"field": "value", "order": "ascending"}],
                **BY_COLOUR,
            }
        ],
        "params": [selection],
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.9},
        "encoding": {
            "x": number("value", x_title, chart.x_scale),
            "y": share | {"scale": {"domain": [0, 1]}, "axis": percent},
            "color": colour(chart.colour_title, chart.colours),
            "strokeDash": dash(chart.colour_title, chart.colours),
            "opacity": opacity,
        },
        "width": panel_width(len(chart.panels), chart.per_row),
        "height": 190 if len(chart.panels) <= chart.per_row else 130,
    }
    return finish(in_panels(panel, chart.panels, chart.per_row), chart.points)


def order_chart(chart: Chart, _: str, y_title: str) -> Spec:
    """Return a chart of values in run order.

    Fields of the points: order, value, colour, used, run, treatment, edge.
    """
    selection, opacity = highlight(0.85, 0.1)
    position = {
        "field": "order",
        "type": "quantitative",
        "title": "place in the order of execution",
        "scale": {"nice": False, "zero": False, "padding": 6},
        "axis": {"tickMinStep": 1, "format": "d", "grid": False},
    }
    verdict = {"domain": ["valid", "excluded"], "range": [0.75, 0]}
    edges = {
        "transform": [
            {"filter": "isValid(datum.edge)"},
            {"aggregate": [{"op": "count", "as": "runs"}], "groupby": ["edge"]},
        ],
        "mark": {"type": "rule", "color": MUTED, "strokeDash": [3, 3], "opacity": 0.6},
        "encoding": {"x": {"field": "edge", "type": "quantitative"}},
    }
    dots = {
        "params": [selection],
        "mark": {"type": "point", "size": 42, "crowded": 14, "strokeWidth": 1, "opacity": 1},
        "encoding": {
            "x": position,
            "y": number("value", y_title, chart.y_scale),
            "color": colour(chart.colour_title, chart.colours),
            "shape": shape(chart.colour_title, chart.colours),
            # Valid runs are filled and excluded runs are hollow, which is also visible in
            # greyscale.
            "fillOpacity": {
                "field": "used",
                "type": "nominal",
                "title": "verdict (hollow: excluded)",
                "scale": verdict,
                "legend": None,
            },
            "fill": colour(chart.colour_title, chart.colours),
            "strokeOpacity": opacity,
            "tooltip": [
                hint("run", None, None),
                hint("treatment", None, None),
                hint("used", "verdict", None),
                hint("value", y_title),
            ],
        },
    }
    layers = {
        "data": {"name": POINTS},
        "layer": [edges, dots],
        "width": WIDTH_PX - 76,
        "height": 240,
    }
    return finish(layers, chart.points)


def _dots(chart: Chart, rows: Rows, x_title: str, size: int = 38) -> Spec:
    """Return the layer that draws runs as dots, with an offset in the row to avoid overlap."""
    spread = [
        {"window": [{"op": "row_number", "as": "place"}], **rows.group},
        {"calculate": f"(datum.place * 7) % {SPREAD} - 5", "as": "spread"},
    ]
    return {
        "transform": spread,
        "mark": {
            "type": "circle",
            "size": size,
            "crowded": min(size, 14),
            "opacity": 1,
            "fillOpacity": 0.5,
        },
        "encoding": {
            "x": number("value", x_title, chart.x_scale, padding=12),
            "y": rows.channel | {"axis": {"labelLimit": rows.names_px}},
            "yOffset": {
                "field": "spread",
                "type": "quantitative",
                "scale": {"domain": [-8, 8]},
            },
            "color": colour(chart.colour_title, chart.colours) | {"legend": None},
            "tooltip": [
                hint("run", None, None),
                hint("treatment", None, None),
                hint("value", x_title),
            ],
        },
    }


def _group_value(field: str) -> Spec:
    return {"op": "min", "field": field, "as": field}


def _rows_in_panels(layers: list[Spec], rows: Rows, chart: Chart) -> Spec:
    """Return a chart with a row per level or treatment, divided into panels."""
    names_px = rows.names_px if isinstance(rows.names_px, int) else NAMES_PX
    panel = {
        "layer": layers,
        "width": panel_width(len(chart.panels), chart.per_row, names_px - GAP_PX),
        "height": {"step": ROW_PX},
    }
    return in_panels(panel, chart.panels, chart.per_row)

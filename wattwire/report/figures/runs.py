"""Charts of runs: dots, boxes, violins and curves, and values in run order."""

from __future__ import annotations

from collections.abc import Sequence

from wattwire.report.figures.style import (
    GAP_PX,
    INK,
    MUTED,
    NAMES_PX,
    POINTS,
    WIDTH_PX,
    Points,
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

BOX_RUNS_MIN = 5
"""Minimum number of runs for a box; the quartiles of fewer say little, so only dots are drawn."""
VIOLIN_RUNS_MIN = 20
"""Minimum number of runs for a violin; a density of fewer shows its bandwidth, not the data."""
ROW_PX = 40
SPREAD = 11
ROWS_OF_GROUP = {"groupby": ["colour", "panel"]}


def runs_chart(
    points: Points | None,
    domain: Sequence[str],
    colour_title: str,
    panels: Sequence[str],
    per_row: int,
    value_title: str,
) -> Spec:
    """Return runs as dots, each group's geometric mean as a bar. Points: value, colour, …"""
    centre = {
        "transform": [{"aggregate": [_group_value("centre")], **ROWS_OF_GROUP}],
        "mark": {"type": "tick", "thickness": 2.5, "color": INK, "size": 24},
        "encoding": {
            "x": {"field": "centre", "type": "quantitative", "title": value_title},
            "y": nominal("colour", None, domain),
            "tooltip": [hint("centre", "geometric mean")],
        },
    }
    layers = [_dots(domain, colour_title, value_title, "log"), centre]
    return finish(_rows_in_panels(layers, [], domain, panels, per_row), points)


def box_chart(
    points: Points | None,
    domain: Sequence[str],
    colour_title: str,
    panels: Sequence[str],
    per_row: int,
    value_title: str,
    scale: str = "log",
) -> Spec:
    """Return box plots, with every run as a dot. Points: value, colour, …

    Boxes are quartiles; whiskers reach the lowest and highest run, so that no run is marked as an
    outlier. A group of fewer than BOX_RUNS_MIN runs has dots only.
    """
    quartiles = [
        {
            "aggregate": [
                {"op": op, "field": "value", "as": op}
                for op in ("min", "q1", "median", "q3", "max")
            ]
            + [{"op": "count", "as": "runs"}],
            **ROWS_OF_GROUP,
        },
        {"filter": f"datum.runs >= {BOX_RUNS_MIN}"},
    ]
    y = nominal("colour", None, domain)
    tint = colour(colour_title, domain) | {"legend": None}

    def span(mark: Spec, low: str, high: str, **more: Spec) -> Spec:
        ends = {"x": {"field": low, "type": "quantitative"}, "x2": {"field": high}}
        return {"transform": quartiles, "mark": mark, "encoding": {**ends, "y": y, **more}}

    tooltip = [hint("runs", "runs", ",d"), hint("median"), hint("q1", "quartile"), hint("q3", "to")]
    box = {"type": "bar", "size": 24, "fillOpacity": 0.2, "stroke": INK, "strokeWidth": 1.1}
    layers = [
        _dots(domain, colour_title, value_title, scale, size=26),
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
    return finish(_rows_in_panels(layers, [], domain, panels, per_row), points)


def violin_chart(
    points: Points | None,
    domain: Sequence[str],
    colour_title: str,
    panels: Sequence[str],
    per_row: int,
    value_title: str,
    scale: str = "log",
) -> Spec:
    """Return violins, with every run as a dot. Points: value, colour, panel, …

    The kernel density is Gaussian with Scott's bandwidth, estimated on the scale shown and drawn
    between the lowest and highest run; all violins have the same width. A group of fewer than
    VIOLIN_RUNS_MIN runs has dots only.
    """
    log = f"('{scale}' === 'log')"
    density_steps = [
        {"calculate": f"{log} ? log(datum.value) : datum.value", "as": "term"},
        {
            "joinaggregate": [
                {"op": "count", "as": "runs"},
                {"op": "min", "field": "term", "as": "low"},
                {"op": "max", "field": "term", "as": "high"},
            ],
            **ROWS_OF_GROUP,
        },
        {"filter": f"datum.runs >= {VIOLIN_RUNS_MIN} && datum.high > datum.low"},
        {
            "density": "term",
            "groupby": ["colour", "panel"],
            "steps": 80,
            "resolve": "independent",
            "as": ["at", "density"],
        },
        {"joinaggregate": [{"op": "max", "field": "density", "as": "top"}], **ROWS_OF_GROUP},
        {"calculate": f"{log} ? exp(datum.at) : datum.at", "as": "value"},
        {"calculate": "datum.density / datum.top", "as": "width"},
    ]
    violin = {
        "transform": density_steps,
        # A trail is a line of varying width; along a row it has the shape of a violin.
        "mark": {"type": "trail", "opacity": 1, "fillOpacity": 0.3},
        "encoding": {
            "x": {"field": "value", "type": "quantitative"},
            "y": nominal("colour", None, domain),
            "order": {"field": "value", "type": "quantitative"},
            "size": {
                "field": "width",
                "type": "quantitative",
                "legend": None,
                "scale": {"domain": [0, 1], "range": [0, ROW_PX - 4]},
            },
            "color": colour(colour_title, domain) | {"legend": None},
        },
    }
    layers = [violin, _dots(domain, colour_title, value_title, scale, size=12)]
    return finish(_rows_in_panels(layers, [], domain, panels, per_row), points)


def runs_ecdf_chart(
    points: Points | None,
    domain: Sequence[str],
    colour_title: str,
    panels: Sequence[str],
    per_row: int,
    value_title: str,
    scale: str = "log",
) -> Spec:
    """Return curves of the share of runs at or below a value. Points: value, colour, panel."""
    selection, opacity = highlight()
    share = {"field": "share", "type": "quantitative", "title": "share of runs"}
    percent = {"tickCount": 4, "labelExpr": "format(100 * datum.value, '~g') + ' %'"}
    chart = {
        "transform": [
            {
                "window": [{"op": "cume_dist", "as": "share"}],
                "sort": [{"field": "value", "order": "ascending"}],
                **ROWS_OF_GROUP,
            }
        ],
        "params": [selection],
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.9},
        "encoding": {
            "x": number("value", value_title, scale),
            "y": share | {"scale": {"domain": [0, 1]}, "axis": percent},
            "color": colour(colour_title, domain),
            "strokeDash": dash(colour_title, domain),
            "opacity": opacity,
        },
        "width": panel_width(len(panels), per_row),
        "height": 190 if len(panels) <= per_row else 130,
    }
    return finish(in_panels(chart, panels, per_row), points)


def order_chart(
    points: Points | None,
    domain: Sequence[str],
    colour_title: str,
    value_title: str,
    scale: str = "log",
) -> Spec:
    """Return runs in run order. Points: order, value, colour, used, run, edge."""
    selection, opacity = highlight(0.85, 0.1)
    position = {
        "field": "order",
        "type": "quantitative",
        "title": "place in the order of execution",
        "scale": {"nice": False, "zero": False, "padding": 6},
        "axis": {"tickMinStep": 1, "format": "d", "grid": False},
    }
    verdict = {"domain": ["usable", "excluded"], "range": [0.75, 0]}
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
            "y": number("value", value_title, scale),
            "color": colour(colour_title, domain),
            "shape": shape(colour_title, domain),
            # Usable runs are filled, excluded ones hollow, which is visible in grey as well.
            "fillOpacity": {
                "field": "used",
                "type": "nominal",
                "title": "verdict (hollow: excluded)",
                "scale": verdict,
                "legend": None,
            },
            "fill": colour(colour_title, domain),
            "strokeOpacity": opacity,
            "tooltip": [
                hint("run", None, None),
                hint("treatment", None, None),
                hint("used", "verdict", None),
                hint("value", value_title),
            ],
        },
    }
    chart = {
        "data": {"name": POINTS},
        "layer": [edges, dots],
        "width": WIDTH_PX - 76,
        "height": 240,
    }
    return finish(chart, points)


def _dots(
    domain: Sequence[str], colour_title: str, value_title: str, scale: str, size: int = 38
) -> Spec:
    """Return the layer of runs as dots in their group's row, spread so that they do not overlap."""
    spread = [
        {"window": [{"op": "row_number", "as": "place"}], **ROWS_OF_GROUP},
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
            "x": number("value", value_title, scale, padding=12),
            "y": nominal("colour", None, domain) | {"axis": {"labelLimit": NAMES_PX}},
            "yOffset": {
                "field": "spread",
                "type": "quantitative",
                "scale": {"domain": [-8, 8]},
            },
            "color": colour(colour_title, domain) | {"legend": None},
            "tooltip": [
                hint("run", None, None),
                hint("treatment", None, None),
                hint("value", value_title),
            ],
        },
    }


def _group_value(field: str) -> Spec:
    return {"op": "min", "field": field, "as": field}


def _rows_in_panels(
    layers: list[Spec], steps: list[Spec], domain: Sequence[str], panels: Sequence[str],
    per_row: int,
) -> Spec:  # fmt: skip
    """Return a chart with one row per level, in panels."""
    chart = {
        "transform": steps,
        "layer": layers,
        "width": panel_width(len(panels), per_row, NAMES_PX - GAP_PX),
        "height": {"step": ROW_PX},
    }
    return in_panels(chart, panels, per_row)

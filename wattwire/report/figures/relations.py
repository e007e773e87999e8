"""Draw one response against another, and a response over two factors."""

from __future__ import annotations

from collections.abc import Sequence

from wattwire.report.figures.style import (
    HEAT,
    INK,
    NAMES_PX,
    Points,
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


def scatter_chart(
    points: Points | None,
    domain: Sequence[str],
    colour_title: str,
    panels: Sequence[str],
    per_row: int,
    titles: tuple[str, str],
    scales: tuple[str, str] = ("log", "log"),
) -> Spec:
    """Return a scatter plot of runs with treatment medians.

    Fields of the points: x, y, colour, treatment, panel, run.
    """
    selection, opacity = highlight(0.45, 0.05)
    valid_only = {"filter": "isValid(datum.x) && isValid(datum.y)"}
    shared = {
        "color": colour(colour_title, domain),
        "shape": shape(colour_title, domain),
    }
    tooltip = [hint("treatment", None, None), hint("x", titles[0]), hint("y", titles[1])]
    medians = {
        "aggregate": [
            {"op": "median", "field": "x", "as": "x_median"},
            {"op": "median", "field": "y", "as": "y_median"},
            {"op": "count", "as": "runs"},
        ],
        "groupby": ["treatment", "colour", "panel"],
    }
    chart = {
        "transform": [valid_only],
        "layer": [
            {
                "params": [selection],
                "mark": {"type": "point", "filled": True, "size": 22, "crowded": 10, "opacity": 1},
                "encoding": {
                    "x": number("x", titles[0], scales[0]),
                    "y": number("y", titles[1], scales[1]),
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
                        hint("x_median", f"median {titles[0]}"),
                        hint("y_median", f"median {titles[1]}"),
                    ],
                },
            },
        ],
        "width": panel_width(len(panels), per_row),
        "height": 300 if len(panels) < 2 else 200,
    }  # fmt: skip
    return finish(in_panels(chart, panels, per_row), points)


def heat_chart(
    points: Points | None,
    across: tuple[str, Sequence[str]],
    down: tuple[str, Sequence[str]],
    panels: Sequence[str],
    per_row: int,
    value_title: str,
    scale: str = "log",
) -> Spec:
    """Return a heat map of a response over two factors.

    Fields of the points: value, across, down, panel. `across` and `down` are the title and the
    levels of a factor. A cell shows the mean of its runs, which is geometric on a log scale. The
    number is printed if it fits.
    """
    x = nominal("across", *across) | {"axis": {"labelAngle": 0, "labelOverlap": True}}
    y = nominal("down", *down) | {"axis": {"labelLimit": NAMES_PX}}
    shade = {
        "field": "mean",
        "type": "quantitative",
        "title": value_title,
        "scale": {"type": scale, "scheme": HEAT, "zero": False, "nice": False},
        "legend": {
            "gradientLength": 220, "tickCount": 4, "labelExpr": plain_number("datum.value"),
            "titleLimit": 400,
        },
    }  # fmt: skip
    tooltip = [
        hint("across", across[0], None),
        hint("down", down[0], None),
        hint("mean", value_title),
        hint("runs", "runs", ",d"),
    ]
    layers: list[Spec] = [
        {
            "mark": {"type": "rect", "stroke": "white"},
            "encoding": {"color": shade, "tooltip": tooltip},
        }
    ]
    cells = len(across[1]) * len(down[1]) * max(1, len(panels))
    if cells <= CELLS_WITH_NUMBERS_MAX:
        layers.append(_number_layer())
    width = panel_width(len(panels), per_row, NAMES_PX)
    chart = {
        "transform": _cell_means(scale),
        "layer": layers,
        "encoding": {"x": x, "y": y},
        "width": min(width, 90 * max(1, len(across[1]))),
        "height": {"step": 30},
    }
    return finish(in_panels(chart, panels, per_row), points)


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

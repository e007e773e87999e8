"""Colours, sizes, scales, panels and style that all charts share.

A chart is a Vega-Lite document. Its points are under `datasets`. A chart without points is a
template. Its placeholders begin with @, and explore.js replaces them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wattwire.model import words
from wattwire.report.figures.fitting import fit
from wattwire.report.figures.letters import all_drawable, drawable

Spec = dict[str, Any]
Points = Sequence[Mapping[str, Any]]

# Okabe & Ito, Color Universal Design (2008), without yellow, which is too faint on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# Some of these colours are equal in greyscale, so shapes and dashes also distinguish levels.
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (4, 2), (10, 4), (1, 3))
HEAT = "cividis"
INK, MUTED, GRID = "#1b1f24", "#5a6572", "#e3e6ea"
FONT = "'Liberation Sans', Arial, Helvetica, sans-serif"
LEGEND = "highlight"
POINTS = "points"

WIDTH_PX = 800
"""Target width of a chart in px. At two printed columns (174 mm), its smallest font is 7.4 pt."""
FONT_PX = 12
GAP_PX = 14
AXIS_PX, NAMES_PX = 64, 150
"""Space next to a panel for axis labels and for level names, in px."""


CONFIG: Spec = {
    "font": FONT,
    "background": "white",
    "padding": 6,
    "aria": False,
    "axis": {
        "labelColor": INK,
        "titleColor": MUTED,
        "gridColor": GRID,
        "domainColor": "#b5bcc4",
        "tickColor": "#b5bcc4",
        "labelFontSize": FONT_PX,
        "titleFontSize": FONT_PX,
        "titleFontWeight": "normal",
        "labelFontWeight": "normal",
        "titlePadding": 8,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": MUTED,
        "titleFontWeight": "normal",
        "labelFontSize": FONT_PX,
        "titleFontSize": FONT_PX,
        "orient": "top",
        "symbolStrokeWidth": 2,
        "symbolSize": 70,
        "columns": 6,
        "labelLimit": 180,
        "offset": 6,
    },
    "header": {
        "labelColor": INK,
        "titleColor": MUTED,
        "labelFontSize": FONT_PX,
        "labelFontWeight": "bold",
        "titleFontSize": FONT_PX,
        "titleFontWeight": "normal",
        "labelPadding": 4,
        "labelLimit": 400,
    },
    "view": {"stroke": "#d5dae0", "continuousWidth": 300, "continuousHeight": 300},
}


def finish(chart: Spec, points: Points | None) -> Spec:
    """Return the chart with the style of the page and its points. Without points, it is a template.

    Names of levels and columns are converted to text that Vega can draw.
    """
    chart = _drawable_words(chart)
    texts = {text for point in points or () for text in point.values() if isinstance(text, str)}
    if points is not None and not all_drawable(texts):
        points = [_drawable_words(point) for point in points]
    fit(chart, points)
    # The points are not copied, so charts with the same points share one list on the page.
    datasets = {} if points is None else {"datasets": {POINTS: points}}
    return {"config": CONFIG, **chart, **datasets}


def _drawable_words(node: Any) -> Any:
    """Return a part of a chart with all text converted to drawable text."""
    if isinstance(node, str):
        return drawable(node)
    if isinstance(node, Mapping):
        return {key: _drawable_words(value) for key, value in node.items()}
    return [_drawable_words(item) for item in node] if isinstance(node, (list, tuple)) else node


def nominal(field: str, title: str | None, domain: Sequence[str]) -> Spec:
    """Return an encoding channel for names in a given order."""
    return {"field": field, "type": "nominal", "title": title, "sort": list(domain)}


def colour(title: str, domain: Sequence[str]) -> Spec:
    """Return an encoding channel with a fixed colour for each level of `domain`."""
    scale = {"domain": list(domain), "range": list(PALETTE)}
    return nominal("colour", title, domain) | {"scale": scale}


def shape(title: str, domain: Sequence[str]) -> Spec:
    """Return an encoding channel with a shape per level, which also works in greyscale."""
    scale = {"domain": list(domain), "range": list(SHAPES)}
    return nominal("colour", title, domain) | {"scale": scale}


def dash(title: str, domain: Sequence[str]) -> Spec:
    """Return an encoding channel with a dash pattern per level, which also works in greyscale."""
    scale = {"domain": list(domain), "range": [list(pattern) for pattern in DASHES]}
    return nominal("colour", title, domain) | {"scale": scale}


def number(field: str, title: str, scale: str = "log", padding: int = 8, ticks: int = 5) -> Spec:
    """Return an encoding channel for numbers on a scale that starts at the data, not at zero."""
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"type": scale, "nice": False, "zero": False, "padding": padding},
        "axis": {
            "tickCount": ticks,
            "labelExpr": plain_number("datum.value"),
            "labelOverlap": "greedy",
            "labelSeparation": 7,
        },
    }


def axis_title(title: str, unit: str, scale: str = "linear") -> str:
    """Return the title of an axis with its unit, and with a note on a logarithmic scale."""
    notes = [note for note in (unit, "log scale" if scale == "log" else "") if note]
    return f"{title} ({', '.join(notes)})" if notes else title


def plain_number(of: str) -> str:
    """Return a Vega expression that formats a number as on the page, with spaces in thousands.

    SI prefixes begin at a million.
    """
    return f"abs({of}) < 1e6 ? {_spaced(of, ',~g')} : format({of}, '~s')"


def short_number(of: str) -> str:
    """Return a Vega expression that formats a number to three digits."""
    return f"abs({of}) < 1e6 ? {_spaced(of, ',.3r')} : format({of}, '.3s')"


def _spaced(of: str, form: str) -> str:
    return f"replace(format({of}, '{form}'), /,/g, '{words.NARROW_SPACE}')"


def hint(field: str, title: str | None = None, form: str | None = ",.4~r") -> Spec:
    """Return a line of a mark's tooltip."""
    encoding: Spec = {"field": field, "title": title or field}
    if form is None:
        return encoding | {"type": "nominal"}
    return encoding | {"type": "quantitative", "format": form}


def highlight(strong: float = 1.0, faint: float = 0.12) -> tuple[Spec, Spec]:
    """Return a selection bound to the legend, and an opacity that depends on it."""
    selection = {
        "name": LEGEND,
        "select": {"type": "point", "fields": ["colour"]},
        "bind": "legend",
    }
    return selection, {"condition": {"param": LEGEND, "value": strong}, "value": faint}


def panel_width(panels: int, per_row: int, label_px: int = AXIS_PX) -> int:
    """Return the width (px) of each of `panels` panels, with at most `per_row` in a row."""
    columns = max(1, min(per_row, panels))
    return max(120, (WIDTH_PX - label_px - 12 - GAP_PX * (columns - 1)) // columns)


def in_panels(chart: Spec, panels: Sequence[str], per_row: int) -> Spec:
    """Return the chart with one panel per title, wrapped into rows.

    A grid of rows and columns is not used, because Vega-Lite misplaces panels if a combination is
    missing.
    """
    if len(panels) < 2:
        return {"data": {"name": POINTS}, **chart}
    # All panels share a scale, so transforms run before the division into panels.
    steps = {"transform": chart["transform"]} if chart.get("transform") else {}
    chart = {key: value for key, value in chart.items() if key != "transform"}
    return {
        "data": {"name": POINTS},
        **steps,
        "facet": nominal("panel", None, panels),
        "columns": per_row,
        "spacing": GAP_PX,
        "spec": chart,
    }

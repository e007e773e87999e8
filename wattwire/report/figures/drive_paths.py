"""Draw paths in the plane, with equal scales of both axes."""

from __future__ import annotations

from wattwire.analysis.charts import LINEAR, Chart
from wattwire.report.figures.style import (
    Spec,
    colour,
    dash,
    finish,
    highlight,
    hint,
    in_panels,
    number,
    panel_width,
)

MARGIN_SHARE = 0.05
"""Empty share of the range of positions on each side."""


def paths_chart(chart: Chart, x_title: str, y_title: str) -> Spec:
    """Return a chart of paths. Fields of the points: x, y, order, colour, panel."""
    selection, opacity = highlight()
    domain, title = chart.colours, chart.colour_title
    side_px = min(360, panel_width(len(chart.panels), chart.per_row))
    axes = {}
    ranges = {name: [point[name] for point in chart.points] or [0.0] for name in ("x", "y")}
    span = max(max(values) - min(values) for values in ranges.values()) or 1.0
    for name, axis_title in (("x", x_title), ("y", y_title)):
        centre = (min(ranges[name]) + max(ranges[name])) / 2
        reach = span * (0.5 + MARGIN_SHARE)
        axes[name] = number(name, axis_title, LINEAR, padding=0)
        axes[name]["scale"] |= {"domain": [centre - reach, centre + reach]}
    panel = {
        "params": [selection],
        "mark": {"type": "line", "strokeWidth": 1.3},
        "encoding": {
            **axes,
            "order": {"field": "order", "type": "quantitative"},
            "color": colour(title, domain),
            "strokeDash": dash(title, domain),
            "opacity": opacity,
            "tooltip": [hint("colour", title, None), hint("x", x_title), hint("y", y_title)],
        },
        "width": side_px,
        "height": side_px,
    }
    return finish(in_panels(panel, chart.panels, chart.per_row), chart.points)

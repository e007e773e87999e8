"""Draw a response over a numeric factor as points and lines."""

from __future__ import annotations

from typing import Any

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
    shape,
)

TICKS_MAX = 12


def line_chart(chart: Chart, x_title: str, y_title: str) -> Spec:
    """Return a chart of means with intervals and lines over a number.

    Fields of the points: part, x, y, colour, panel; means also have runs and, with an interval, low
    and high. `part` is "mean", "fit" (a fitted line) or "path" (a line that connects the means).
    """
    selection, opacity = highlight()
    domain, colour_title = chart.colours, chart.colour_title
    y = number("y", y_title, chart.y_scale)
    x = number("x", x_title, chart.x_scale)
    levels = sorted({point["x"] for point in chart.points if point["part"] == "mean"})
    if len(levels) <= TICKS_MAX and chart.x_scale == LINEAR:
        x["axis"] = {**x["axis"], "values": levels, "tickCount": len(levels)}
    legend = {} if len(domain) > 1 else {"legend": None}
    shared = {"x": x, "color": colour(colour_title, domain) | legend, "opacity": opacity}
    tooltip = [
        hint("colour", colour_title or "response", None), hint("x", x_title),
        hint("y", y_title), hint("low", "95 % from"), hint("high", "to"),
        hint("runs", "runs", ",d"),
    ]  # fmt: skip

    def layer(part: str, mark: Spec, **encoding: Any) -> Spec:
        steps = [{"filter": f"datum.part === '{part}'"}]
        return {"transform": steps, "mark": mark, "encoding": shared | encoding}

    interval = layer("mean", {"type": "rule", "strokeWidth": 1.5}, y=y | {"field": "low"})
    interval["transform"].append({"filter": "isValid(datum.low)"})
    interval["encoding"]["y2"] = {"field": "high"}
    layers = [
        layer("path", {"type": "line", "strokeWidth": 1, "strokeDash": [1, 3]}, y=y),
        layer(
            "fit", {"type": "line", "strokeWidth": 1.7}, y=y,
            strokeDash=dash(colour_title, domain) | legend,
        ),
        interval,
        layer(
            "mean", {"type": "point", "filled": True, "size": 50, "opacity": 1}, y=y,
            shape=shape(colour_title, domain) | legend, tooltip=tooltip,
        )
        | {"params": [selection]},
    ]  # fmt: skip
    panel = {
        "layer": layers,
        "width": panel_width(len(chart.panels), chart.per_row),
        "height": 260 if len(chart.panels) < 2 else 190,
    }
    return finish(in_panels(panel, chart.panels, chart.per_row), chart.points)

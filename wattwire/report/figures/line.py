"""Draw a response over a numeric factor as points and lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wattwire.report.figures.style import (
    Points,
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


def line_chart(
    points: Points,
    domain: Sequence[str],
    colour_title: str,
    panels: Sequence[str],
    per_row: int,
    titles: tuple[str, str],
    scales: tuple[str, str],
) -> Spec:
    """Return a chart of means with intervals and lines over a number.

    Fields of the points: part, x, y, colour, panel; means also have runs and, with an interval, low
    and high. `part` is "mean", "fit" (a fitted line) or "path" (a line that connects the means).
    """
    selection, opacity = highlight()
    y = number("y", titles[1], scales[1])
    x = number("x", titles[0], scales[0])
    levels = sorted({point["x"] for point in points if point["part"] == "mean"})
    if len(levels) <= TICKS_MAX and scales[0] == "linear":
        x["axis"] = {**x["axis"], "values": levels, "tickCount": len(levels)}
    legend = {} if len(domain) > 1 else {"legend": None}
    shared = {"x": x, "color": colour(colour_title, domain) | legend, "opacity": opacity}
    tooltip = [
        hint("colour", colour_title or "response", None), hint("x", titles[0]),
        hint("y", titles[1]), hint("low", "95 % from"), hint("high", "to"),
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
    chart = {
        "layer": layers,
        "width": panel_width(len(panels), per_row),
        "height": 260 if len(panels) < 2 else 190,
    }
    return finish(in_panels(chart, panels, per_row), points)

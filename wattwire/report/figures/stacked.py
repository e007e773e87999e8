"""Draw the medians of several responses as stacked bars, for example the hops of a pipeline."""

from __future__ import annotations

from typing import Any

from wattwire.analysis.charts import Chart
from wattwire.report.figures.fitting import LETTER_PX
from wattwire.report.figures.style import (
    GAP_PX,
    HEAT,
    NAMES_PX,
    PALETTE,
    WIDTH_PX,
    Spec,
    colour,
    finish,
    hint,
    in_panels,
    nominal,
    panel_width,
    plain_number,
)

RESPONSE = "response"
"""Title of the segments."""
ROW_PX = 30
COLUMN_GAP_PX = 28
"""Gap between the columns of the legend. A viewer without the figure's font uses wider letters."""
SYMBOL_PX = 40 + COLUMN_GAP_PX
"""Width of a legend's symbol with its margins and the gap to the next column, in px."""


def stacked_chart(chart: Chart, x_title: str, y_title: str) -> Spec:
    """Return a chart of stacked bars with a row per level and a segment per response.

    Fields of the points: level, colour (the response), value, place (in the stack), panel, runs.
    """
    domain = chart.colours
    longest_px = LETTER_PX * max(map(len, domain), default=0) + SYMBOL_PX
    tint = colour(RESPONSE, domain)
    tint["legend"] = {
        "columns": max(1, int(WIDTH_PX / longest_px)),
        "columnPadding": COLUMN_GAP_PX,
        "labelLimit": WIDTH_PX,
    }
    if len(domain) > len(PALETTE):
        # Repeated colours would confuse segments; an ordered scheme shows their order.
        tint["scale"] = {"domain": list(domain), "scheme": HEAT}
    panel: dict[str, Any] = {
        "mark": {"type": "bar", "stroke": "white", "strokeWidth": 0.5},
        "encoding": {
            "y": nominal("level", y_title, chart.rows) | {"axis": {"labelLimit": NAMES_PX}},
            "x": {
                "field": "value", "type": "quantitative", "title": x_title, "stack": "zero",
                "axis": {"tickCount": 5, "labelExpr": plain_number("datum.value")},
            },
            "color": tint,
            "order": {"field": "place", "type": "quantitative"},
            "tooltip": [
                hint("level", y_title, None), hint("colour", RESPONSE, None),
                hint("value", x_title), hint("runs", "runs", ",d"),
            ],
        },
        "width": panel_width(len(chart.panels), chart.per_row, NAMES_PX - GAP_PX),
        "height": {"step": ROW_PX},
    }  # fmt: skip
    return finish(in_panels(panel, chart.panels, chart.per_row), chart.points)

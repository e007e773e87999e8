"""Draw system calls as stacked bars whose segments add up to the total."""

from __future__ import annotations

from wattwire.analysis.charts import Chart
from wattwire.report.figures.style import (
    NAMES_PX,
    WIDTH_PX,
    Spec,
    colour,
    finish,
    hint,
    nominal,
)

ROW_PX = 22


def calls_chart(chart: Chart, *_: str) -> Spec:
    """Return a stacked bar chart with a bar per treatment and a segment per system call.

    The points have the fields treatment, colour (the call), value and place.
    """
    return finish(
        {
            "width": WIDTH_PX - NAMES_PX,
            "height": {"step": ROW_PX},
            "data": {"name": "points"},
            "mark": {"type": "bar"},
            "encoding": {
                "y": nominal("treatment", None, chart.rows),
                "x": {
                    "field": "value",
                    "type": "quantitative",
                    "title": "system calls per message",
                    "stack": "zero",
                },
                "color": colour("call", chart.colours),
                "order": {"field": "place", "type": "quantitative"},
                "tooltip": [
                    hint("treatment", "treatment", None),
                    hint("colour", "call", None),
                    hint("value", "per message"),
                ],
            },
        },
        chart.points,
    )

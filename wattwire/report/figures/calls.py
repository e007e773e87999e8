"""Draw system calls as stacked bars whose segments add up to the total."""

from __future__ import annotations

from collections.abc import Sequence

from wattwire.report.figures.style import (
    NAMES_PX,
    WIDTH_PX,
    Points,
    Spec,
    colour,
    finish,
    hint,
    nominal,
)

ROW_PX = 22


def calls_chart(points: Points | None, rows: Sequence[str], domain: Sequence[str]) -> Spec:
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
                "y": nominal("treatment", None, rows),
                "x": {
                    "field": "value",
                    "type": "quantitative",
                    "title": "system calls per message",
                    "stack": "zero",
                },
                "color": colour("call", domain),
                "order": {"field": "place", "type": "quantitative"},
                "tooltip": [
                    hint("treatment", "treatment", None),
                    hint("colour", "call", None),
                    hint("value", "per message"),
                ],
            },
        },
        points,
    )

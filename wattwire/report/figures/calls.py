"""Chart of a composition: stacked bars whose segments add up to the total."""

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

OTHER = "all others"
ROW_PX = 22


def calls_chart(points: Points | None, rows: Sequence[str], domain: Sequence[str]) -> Spec:
    """Return stacked bars: one bar per treatment, one segment per system call.

    Points: treatment, colour (the call), value, place.
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

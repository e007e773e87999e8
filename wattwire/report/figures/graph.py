"""Draw a graph of nodes in rows, with a text on each edge and on each node."""

from __future__ import annotations

from typing import Any

from wattwire.analysis.charts import Chart
from wattwire.report.figures.style import FONT_PX, INK, MUTED, WIDTH_PX, Spec, finish

BOX_WIDTH_PX, BOX_HEIGHT_PX = 138, 34
ROW_PX = 104
LABEL_WIDTH_PX = 190
MARGIN_PX = 24
ARROW_PX = 60
"""Area of an arrowhead (px²)."""


def graph_chart(chart: Chart, x_title: str, y_title: str) -> Spec:
    """Return a chart of boxes in rows, connected by lines with arrows. It has no axes.

    Fields of the points: kind (node, bend or edge), x (0 to 1) and y (the row); name and value of a
    node and of an edge's label; edge and order of a bend; end_x, end_y and down (1 if the edge
    arrives from above) of an edge.
    """
    height = ROW_PX * max(1, len(chart.rows) - 1) + BOX_HEIGHT_PX + 2 * MARGIN_PX
    half_row = (BOX_HEIGHT_PX / 2 + MARGIN_PX) / ROW_PX
    rows = max(1, len(chart.rows) - 1)

    def at(x: str = "x", y: str = "y") -> dict[str, Any]:
        return {
            "x": {"field": x, "type": "quantitative", "axis": None,
                  "scale": {"domain": [0, 1], "nice": False}},
            "y": {"field": y, "type": "quantitative", "axis": None,
                  "scale": {"domain": [rows + half_row, -half_row], "nice": False,
                            "zero": False}},
        }  # fmt: skip

    def only(kind: str) -> list[dict[str, Any]]:
        return [{"filter": f"datum.kind == '{kind}'"}]

    def text(field: str, **mark: Any) -> dict[str, Any]:
        return {"mark": {"type": "text", "fontSize": FONT_PX, **mark},
                "encoding": {**at(), "text": {"field": field, "type": "nominal"}}}  # fmt: skip

    def arrow(down: int, shape: str, offset_px: float) -> dict[str, Any]:
        return {
            "transform": [{"filter": f"datum.kind == 'edge' && datum.down == {down}"}],
            "mark": {"type": "point", "shape": shape, "filled": True, "size": ARROW_PX,
                     "color": MUTED, "opacity": 1, "yOffset": offset_px},
            "encoding": at("end_x", "end_y"),
        }  # fmt: skip

    end_px = 4
    halo = {"stroke": "white", "strokeWidth": 5, "strokeJoin": "round", "limit": LABEL_WIDTH_PX}
    label = text("name", color=INK, limit=LABEL_WIDTH_PX)
    box = {
        "mark": {"type": "rect", "width": BOX_WIDTH_PX, "height": BOX_HEIGHT_PX, "fill": "#eef3f8",
                 "stroke": "#0072B2", "cornerRadius": 4},
        "encoding": at(),
    }  # fmt: skip
    layers = [
        {"transform": only("bend"),
         "mark": {"type": "line", "color": MUTED, "strokeWidth": 1.2, "interpolate": "linear"},
         "encoding": {**at(), "detail": {"field": "edge", "type": "nominal"},
                      "order": {"field": "order", "type": "quantitative"}}},
        {"transform": only("node"), **box},
        arrow(1, "triangle-down", -end_px),
        arrow(0, "triangle-up", end_px),
        {"transform": only("edge"), **text("name", **halo)},
        {"transform": only("edge"), **label},
        {"transform": only("node"),
         **text("name", dy=-8, fontWeight="bold", color=INK, limit=BOX_WIDTH_PX - 8)},
        {"transform": only("node"), **text("value", dy=8, color=INK, limit=BOX_WIDTH_PX - 8)},
    ]  # fmt: skip
    spec: Spec = {
        "data": {"name": "points"}, "layer": layers, "width": WIDTH_PX - 12, "height": height,
        "view": {"stroke": None},
    }  # fmt: skip
    return finish(spec, chart.points)

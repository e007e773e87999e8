"""Build charts as Vega-Lite specs. The page draws them, and `print/` writes SVG and PDF files."""

from wattwire.report.figures.curves import ecdf_chart, sizes_chart
from wattwire.report.figures.effects import interaction_chart, ratios_chart
from wattwire.report.figures.letters import drawable
from wattwire.report.figures.relations import heat_chart, scatter_chart
from wattwire.report.figures.runs import (
    TREATMENT_ROWS,
    Rows,
    box_chart,
    order_chart,
    runs_chart,
    runs_ecdf_chart,
    violin_chart,
)
from wattwire.report.figures.style import PALETTE, POINTS, finish

__all__ = [
    "PALETTE",
    "POINTS",
    "TREATMENT_ROWS",
    "Rows",
    "box_chart",
    "drawable",
    "ecdf_chart",
    "finish",
    "heat_chart",
    "interaction_chart",
    "order_chart",
    "ratios_chart",
    "runs_chart",
    "runs_ecdf_chart",
    "scatter_chart",
    "sizes_chart",
    "violin_chart",
]

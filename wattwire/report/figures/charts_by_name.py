"""Name the charts that templates of topics draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wattwire.analysis.charts import Chart
from wattwire.report.figures.calls import calls_chart
from wattwire.report.figures.curves import ecdf_chart, sizes_chart
from wattwire.report.figures.drive_paths import paths_chart
from wattwire.report.figures.effects import interaction_chart, ratios_chart
from wattwire.report.figures.graph import graph_chart
from wattwire.report.figures.line import line_chart
from wattwire.report.figures.relations import heat_chart, scatter_chart
from wattwire.report.figures.runs import box_chart, order_chart, runs_chart, violin_chart
from wattwire.report.figures.stacked import stacked_chart
from wattwire.report.figures.style import Spec

CHARTS: Mapping[str, Callable[[Chart, str, str], Spec]] = {
    "box": box_chart,
    "calls": calls_chart,
    "ecdf": ecdf_chart,
    "graph": graph_chart,
    "heat": heat_chart,
    "interaction": interaction_chart,
    "line": line_chart,
    "order": order_chart,
    "paths": paths_chart,
    "ratios": ratios_chart,
    "runs": runs_chart,
    "scatter": scatter_chart,
    "sizes": sizes_chart,
    "stacked": stacked_chart,
    "violin": violin_chart,
}
"""Name in a template → function of the chart and of the titles of its x and y axis."""

"""Draw the charts that templates of topics name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wattwire.analysis.charts import Chart
from wattwire.report.figures.calls import calls_chart
from wattwire.report.figures.curves import ecdf_chart, sizes_chart
from wattwire.report.figures.effects import ratios_chart
from wattwire.report.figures.relations import scatter_chart
from wattwire.report.figures.runs import runs_chart
from wattwire.report.figures.style import Spec


def _calls(chart: Chart, across: str, up: str) -> Spec:
    return calls_chart(chart.points, chart.rows, chart.colours)


def _ecdf(chart: Chart, across: str, up: str) -> Spec:
    groups = (chart.colours, chart.colour_title, chart.panels, chart.per_row)
    return ecdf_chart(chart.points, *groups)


def _ratios(chart: Chart, across: str, up: str) -> Spec:
    margins = [point["margin_high"] - 1 for point in chart.points if "margin_high" in point]
    return ratios_chart(chart.points, next(iter(margins), None))


def _runs(chart: Chart, across: str, up: str) -> Spec:
    groups = (chart.colours, chart.colour_title, chart.panels, chart.per_row)
    return runs_chart(chart.points, *groups, across)


def _scatter(chart: Chart, across: str, up: str) -> Spec:
    groups = (chart.colours, chart.colour_title, chart.panels, chart.per_row)
    return scatter_chart(chart.points, *groups, (across, up))


def _sizes(chart: Chart, across: str, up: str) -> Spec:
    return sizes_chart(chart.points, chart.colours, chart.colour_title, chart.panels)


CHARTS: Mapping[str, Callable[[Chart, str, str], Spec]] = {
    "calls": _calls,
    "ecdf": _ecdf,
    "ratios": _ratios,
    "runs": _runs,
    "scatter": _scatter,
    "sizes": _sizes,
}
"""Name in a template → function of the chart and of the titles of its x and y axis."""

"""Draw the charts that templates of topics name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wattwire.analysis.charts import Chart
from wattwire.report.figures.calls import calls_chart
from wattwire.report.figures.curves import ecdf_chart, sizes_chart
from wattwire.report.figures.effects import interaction_chart, ratios_chart
from wattwire.report.figures.line import line_chart
from wattwire.report.figures.relations import heat_chart, scatter_chart
from wattwire.report.figures.runs import Rows, box_chart, order_chart, runs_chart, violin_chart
from wattwire.report.figures.stacked import stacked_chart
from wattwire.report.figures.style import Spec


def _box(chart: Chart, across: str, up: str) -> Spec:
    groups = (chart.colours, chart.colour_title, chart.panels, chart.per_row)
    rows = Rows.of_treatments(chart.rows) if chart.rows else None
    return box_chart(chart.points, *groups, across, chart.x_scale, rows)


def _calls(chart: Chart, across: str, up: str) -> Spec:
    return calls_chart(chart.points, chart.rows, chart.colours)


def _ecdf(chart: Chart, across: str, up: str) -> Spec:
    groups = (chart.colours, chart.colour_title, chart.panels, chart.per_row)
    return ecdf_chart(chart.points, *groups)


def _heat(chart: Chart, across: str, up: str) -> Spec:
    """Draw a heat map. `up` is the title of the values; the rows are the groups on colour."""
    groups = ((across, chart.across), (chart.colour_title, chart.colours))
    return heat_chart(chart.points, *groups, chart.panels, chart.per_row, up, chart.y_scale)


def _interaction(chart: Chart, across: str, up: str) -> Spec:
    groups = (chart.colours, chart.colour_title, (across, chart.across), chart.panels)
    return interaction_chart(chart.points, *groups, chart.per_row, up, chart.y_scale)


def _line(chart: Chart, across: str, up: str) -> Spec:
    groups = (chart.colours, chart.colour_title, chart.panels, chart.per_row)
    return line_chart(chart.points, *groups, (across, up), (chart.x_scale, chart.y_scale))


def _order(chart: Chart, across: str, up: str) -> Spec:
    return order_chart(chart.points, chart.colours, chart.colour_title, up, chart.y_scale)


def _ratios(chart: Chart, across: str, up: str) -> Spec:
    margins = [point["margin_high"] - 1 for point in chart.points if "margin_high" in point]
    return ratios_chart(chart.points, next(iter(margins), None))


def _runs(chart: Chart, across: str, up: str) -> Spec:
    groups = (chart.colours, chart.colour_title, chart.panels, chart.per_row)
    return runs_chart(chart.points, *groups, across)


def _scatter(chart: Chart, across: str, up: str) -> Spec:
    groups = (chart.colours, chart.colour_title, chart.panels, chart.per_row)
    scales = (chart.x_scale, chart.y_scale)
    return scatter_chart(chart.points, *groups, (across, up), scales)


def _stacked(chart: Chart, across: str, up: str) -> Spec:
    """Draw stacked bars. `across` is the title of the values, and `up` that of the rows."""
    rows = (up, chart.rows)
    return stacked_chart(chart.points, rows, chart.colours, chart.panels, chart.per_row, across)


def _violin(chart: Chart, across: str, up: str) -> Spec:
    groups = (chart.colours, chart.colour_title, chart.panels, chart.per_row)
    rows = Rows.of_treatments(chart.rows)
    return violin_chart(chart.points, *groups, across, chart.x_scale, rows)


def _sizes(chart: Chart, across: str, up: str) -> Spec:
    return sizes_chart(chart.points, chart.colours, chart.colour_title, chart.panels)


CHARTS: Mapping[str, Callable[[Chart, str, str], Spec]] = {
    "box": _box,
    "calls": _calls,
    "ecdf": _ecdf,
    "heat": _heat,
    "interaction": _interaction,
    "line": _line,
    "order": _order,
    "ratios": _ratios,
    "runs": _runs,
    "scatter": _scatter,
    "sizes": _sizes,
    "stacked": _stacked,
    "violin": _violin,
}
"""Name in a template → function of the chart and of the titles of its x and y axis."""

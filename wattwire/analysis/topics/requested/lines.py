"""Compute the points of a response over a numeric factor, with fitted lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from wattwire.analysis import response_lines
from wattwire.analysis.charts import LINEAR, LOG, Chart, Point, rounded, titles_of
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.response_lines import Group, Line, Lines, lines_of
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.requested.drawings import (
    PER_ROW,
    Axis,
    Drawing,
    Fits,
    FittedLine,
    Obstacle,
    axis_of,
    group_panels,
    in_planned_order,
)
from wattwire.model import words
from wattwire.model.output_requests import ShownFigure
from wattwire.stats import LinearFit

CURVE_POINTS = 60
X_LOG_RATIO = 50.0
"""The factor's axis is logarithmic if its largest level exceeds this multiple of its smallest."""


def line_drawing(
    evidence: Evidence, spec: ShownFigure, response: Response, roles: Sequence[str]
) -> Drawing | Obstacle:
    """Return the chart and the lines of a line figure, or the obstacle to drawing it."""
    by = spec.by or (evidence.primary if evidence.primary != spec.x else "")
    lines = lines_of(evidence, response, roles, spec.x, by, spec.scale)
    if not lines.lines:
        return Obstacle("no value", (response.title,))
    panels = group_panels([line.group for line in lines.lines])
    if isinstance(panels, Obstacle):
        return panels
    xs = [mean.x for line in lines.lines for mean in line.means]
    positive = bool(xs) and min(xs) > 0 and max(xs) > X_LOG_RATIO * min(xs)
    x_scale = LOG if positive else LINEAR
    y_scale = LOG if lines.scale == response_lines.LOG else LINEAR
    names = {line.group: evidence.title(by, line.group.level) if by else "" for line in lines.lines}
    fitted = _fits(lines, spec.x, response, names, panels)
    points = [
        point | {"colour": names[line.group] or response.title, "panel": panels[line.group]}
        for line, fitted_line in zip(lines.lines, fitted.lines, strict=True)
        for point in _points(line, fitted_line.deviates, x_scale, y_scale)
    ]
    present = list(dict.fromkeys(point["colour"] for point in points))
    domain = in_planned_order(titles_of(evidence, by), present) if by else [response.title]
    chart = Chart(
        points,
        domain,
        words.factor_title(by) if by else "",
        panels=list(dict.fromkeys(panels.values())),
        per_row=PER_ROW,
        x_scale=x_scale,
        y_scale=y_scale,
    )
    unit = words.FACTOR_UNITS.get(spec.x, "")
    across = Axis(words.factor_title(spec.x), unit, x_scale == LOG)
    return Drawing(chart, across, axis_of(response, y_scale == LOG), fitted)


def _points(line: Line, deviates: bool, x_scale: str, y_scale: str) -> list[Point]:
    """Return the means, the points of the fitted line, and those of the line through the means.

    The field `part` distinguishes them.
    """
    points: list[Point] = []
    for mean in line.means:
        point: Point = {"part": "mean", "x": mean.x, "y": rounded(mean.mean), "runs": mean.runs}
        if mean.interval is not None and (mean.interval.low > 0 or y_scale != LOG):
            point |= {"low": rounded(mean.interval.low), "high": rounded(mean.interval.high)}
        points.append(point)
    path = [{"part": "path", "x": point["x"], "y": point["y"]} for point in points]
    if not isinstance(line.fit, LinearFit):
        return points + path
    # Below the points, a logarithmic axis would stretch a line that approaches zero.
    ends = [point["low"] if "low" in point else point["y"] for point in points]
    lowest = min(ends) if y_scale == LOG else -np.inf
    space = np.geomspace if x_scale == LOG else np.linspace
    count = CURVE_POINTS if LOG in (x_scale, y_scale) else 2
    xs = space(line.means[0].x, line.means[-1].x, count)
    fitted = [(float(x), line.fit.at(float(x))) for x in xs]
    points += [
        {"part": "fit", "x": rounded(x, 5), "y": rounded(y, 5)} for x, y in fitted if y >= lowest
    ]
    return points + path if deviates else points


def _fits(
    lines: Lines,
    x: str,
    response: Response,
    names: Mapping[Group, str],
    panels: Mapping[Group, str],
) -> Fits:
    fitted = []
    for line in lines.lines:
        parts = (names[line.group], panels[line.group])
        fitted.append(FittedLine(", ".join(filter(None, parts)) or response.title, line.fit))
    is_geometric = lines.scale == response_lines.LOG
    return Fits(tuple(fitted), is_geometric, lines.excluded, response.unit, words.step(x))

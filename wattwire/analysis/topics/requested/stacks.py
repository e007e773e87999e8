"""Compute the medians of several responses as stacked bars, for example the hops of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from wattwire.analysis.charts import Chart, rounded, titles_of
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.response_lines import Segment, medians_of
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.requested.drawings import (
    PER_ROW,
    Axis,
    Drawing,
    Obstacle,
    Stack,
    group_panels,
    in_planned_order,
)
from wattwire.model import words
from wattwire.model.output_requests import ShownFigure


def stack_drawing(
    evidence: Evidence, spec: ShownFigure, responses: Sequence[Response]
) -> Drawing | Obstacle:
    """Return the chart of a stacked figure, or the obstacle to drawing it."""
    units = list(dict.fromkeys(response.unit for response in responses))
    titles = [response.title for response in responses]
    if len(units) > 1:
        return Obstacle("units", tuple(unit or "1" for unit in units))
    by = spec.by or evidence.primary
    segments = medians_of(evidence, responses, spec.roles, by)
    drawn = [segment for segment in segments if segment.median is not None]
    if not drawn:
        return Obstacle("no value", tuple(titles))
    panels = group_panels([segment.group for segment in drawn])
    if isinstance(panels, Obstacle):
        return panels
    points = [
        {
            "level": evidence.title(by, segment.group.level),
            "colour": segment.response.title,
            "value": rounded(segment.median or 0.0),
            "place": titles.index(segment.response.title),
            "runs": segment.runs,
            "panel": panels[segment.group],
        }
        for segment in drawn
    ]
    rows = in_planned_order(titles_of(evidence, by), [str(point["level"]) for point in points])
    chart = Chart(
        points,
        titles,
        rows=rows,
        panels=list(dict.fromkeys(panels.values())),
        per_row=PER_ROW,
    )
    axes = (Axis("medians", units[0]), Axis(words.factor_title(by)))
    return Drawing(chart, *axes, stack=_stack(evidence, by, segments))


def _stack(evidence: Evidence, by: str, segments: Sequence[Segment]) -> Stack:
    """Return the segments without a bar."""
    undrawn = [segment for segment in segments if segment.median is None]
    omitted = [segment for segment in undrawn if segment.runs]
    names = tuple(
        " ".join(
            filter(None, (evidence.title(by, it.group.level), it.group.others, it.response.title))
        )
        for it in omitted
    )
    return Stack(len(omitted) < len(undrawn), names)

"""Compute the points of the figures that a study requests. `lines` and `stacks` have two kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wattwire.analysis.charts import Chart, Point, points_of, rounded, titles_of
from wattwire.analysis.dataset import Evidence, by_treatment, kept_by, levels_of
from wattwire.analysis.metrics_by_role import BOTH, is_measured, values_of
from wattwire.analysis.responses import Response, resolve
from wattwire.analysis.topics.requested.drawings import (
    PER_ROW,
    Drawing,
    Obstacle,
    RequestedFigure,
    Substitute,
    axis_of,
)
from wattwire.analysis.topics.requested.lines import line_drawing
from wattwire.analysis.topics.requested.stacks import stack_drawing
from wattwire.model import words
from wattwire.model.output_requests import ShownFigure


def figure(evidence: Evidence, spec: ShownFigure) -> RequestedFigure:
    """Return a requested figure, or the obstacle to drawing it.

    If `response` was not measured, the figure shows `instead`.
    """
    selection = tuple(
        f"{words.factor_title(factor)} {evidence.title(factor, level)}"
        for factor, level in spec.where.items()
    )
    if spec.where:
        evidence = _selected(evidence, spec.where)
    if spec.kind == "stacked":
        responses = [resolve(response, evidence.described) for response in spec.responses]
        stack = stack_drawing(evidence, spec, responses)
        return RequestedFigure(spec.title, spec.kind, stack, selection)
    requested = resolve(spec.response, evidence.described)
    response, roles = requested, _roles(evidence, requested, spec)
    if not roles and spec.instead:
        response = resolve(spec.instead, evidence.described)
        roles = _roles(evidence, response, spec)
    if not roles:
        obstacle = Obstacle("not measured", (requested.title,))
        return RequestedFigure(spec.title, spec.kind, obstacle, selection)
    substitute = None
    if response is not requested:
        substitute = Substitute(requested.title, response.title, requested.energy)
    draw = {"line": line_drawing, "scatter": _scatter, "box": _boxes}[spec.kind]
    result = draw(evidence, spec, response, roles)
    return RequestedFigure(spec.title, spec.kind, result, selection, substitute)


def _selected(evidence: Evidence, where: Mapping[str, Any]) -> Evidence:
    """Return the evidence with only the runs that have the levels in `where`."""
    allowed = {factor: (level,) for factor, level in where.items()}
    usable, excluded = kept_by(evidence.usable, allowed), kept_by(evidence.excluded, allowed)
    return replace(evidence, usable=usable, excluded=excluded, levels_seen={}, fits={}, groups={})


def _roles(evidence: Evidence, response: Response, spec: ShownFigure) -> list[str]:
    return [role for role in spec.roles if is_measured(evidence, response, role)]


def _panel(role: str) -> str:
    return role.replace("_", " ") if role != BOTH else ""


def _boxes(
    evidence: Evidence, spec: ShownFigure, response: Response, roles: Sequence[str]
) -> Drawing | Obstacle:
    """Return a point per treatment and role: the median over the runs."""
    by = spec.by or evidence.primary
    points: list[Point] = []
    for role in roles:
        for frame in by_treatment(evidence, evidence.usable).values():
            values = values_of(evidence, frame, response, role)
            values = values[np.isfinite(values) & (values > 0)]
            if values.size == 0:
                continue
            treatment = {name: levels_of(frame, name)[0] for name in evidence.varied}
            points.append(
                {
                    "value": rounded(float(np.median(values))),
                    "run": words.plural(int(values.size), "run"),
                    "treatment": evidence.treatment_title(treatment),
                    "colour": evidence.title(by, levels_of(frame, by)[0]),
                    "panel": _panel(role),
                }
            )
    if not points:
        return Obstacle("no pair")
    axis = axis_of(response)
    return Drawing(_chart(evidence, points, by, roles), axis, axis)


def _scatter(
    evidence: Evidence, spec: ShownFigure, response: Response, roles: Sequence[str]
) -> Drawing | Obstacle:
    """Return a point per run and role."""
    by = spec.by or evidence.primary
    frame, against = evidence.usable, resolve(spec.against, evidence.described)
    points: list[Point] = []
    for role in roles:
        x_values = values_of(evidence, frame, against, role)
        if not np.isfinite(x_values).any():  # the response has no value per role
            x_values = values_of(evidence, frame, against, BOTH)
        y_values = values_of(evidence, frame, response, role)
        points += points_of(evidence, frame, x_values, y_values, by, _panel(role))
    if not points:
        return Obstacle("no pair")
    return Drawing(_chart(evidence, points, by, roles), axis_of(against), axis_of(response))


def _chart(evidence: Evidence, points: Sequence[Point], by: str, roles: Sequence[str]) -> Chart:
    return Chart(
        points,
        titles_of(evidence, by),
        words.factor_title(by),
        panels=[_panel(role) for role in roles],
        per_row=PER_ROW,
    )

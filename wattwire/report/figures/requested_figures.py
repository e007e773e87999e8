"""Draw the figures that a study requests. Kinds with sentences or segments have their own file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wattwire.analysis.charts import points_of, titles_of
from wattwire.analysis.dataset import Evidence, by_treatment, kept_by, levels_of
from wattwire.analysis.metrics_by_role import BOTH, NOT_MEASURED, capital, is_measured, values_of
from wattwire.analysis.responses import Response, resolve
from wattwire.model import words
from wattwire.model.output_requests import ShownFigure
from wattwire.report import figures
from wattwire.report.figures.line import line_figure
from wattwire.report.figures.stacked import stacked_figure
from wattwire.report.figures.style import axis_title
from wattwire.report.parts import Figure, Fold, Text
from wattwire.report.words.phrases import Phrase, joined

PER_ROW = 2


def figure(evidence: Evidence, spec: ShownFigure, number: int) -> list[Figure | Text | Fold]:
    """Return the requested figure, or a sentence that explains why it cannot be drawn.

    If `response` was not measured, the figure shows `instead`. A line figure has sentences on its
    lines.
    """
    name = f"laid-out-figure-{number}"
    selection = ""
    if spec.where:
        evidence = _selected(evidence, spec.where)
        levels = [f"{words.factor_title(f)} {evidence.title(f, v)}" for f, v in spec.where.items()]
        selection = f" This figure shows only these levels: {words.listed(levels)}."
    if spec.kind == "stacked":
        responses = [resolve(response, evidence.described) for response in spec.responses]
        stacked = stacked_figure(evidence, spec, responses, spec.roles)
        if isinstance(stacked, Phrase):
            return [Text(joined([f"{spec.title}:", stacked]))]
        caption, chart = stacked
        return [Figure(name, spec.title, joined([caption, selection], ""), chart)]
    requested = resolve(spec.response, evidence.described)
    response, roles = requested, _roles(evidence, requested, spec)
    if not roles and spec.instead:
        response = resolve(spec.instead, evidence.described)
        roles = _roles(evidence, response, spec)
    if not roles:
        return [Text(f"{spec.title}: {requested.title} was {NOT_MEASURED}.")]
    note = selection
    if response is not requested:
        note += f" {capital(requested.title)} was {NOT_MEASURED}: {response.title} is shown instead"
        note += ", which is not energy." if requested.energy else "."
    title = spec.title
    if response is not requested:
        title = f"{capital(response.title)} in place of {requested.title}: {title}"
    if spec.kind == "line":
        lines = line_figure(evidence, spec, response, roles)
        if isinstance(lines, Phrase):
            return [Text(joined([f"{title}:", lines]))]
        caption, chart, sentences = lines
        return [Figure(name, title, joined([caption, note], ""), chart), *sentences]
    by = spec.by or evidence.primary
    panels = [role.replace("_", " ") if role != BOTH else "" for role in roles]
    draw = _scatter if spec.kind == "scatter" else _boxes
    drawn = draw(evidence, spec, response, by, list(zip(roles, panels, strict=True)))
    if drawn is None:
        return [Text(f"{spec.title}: no run has both responses.")]
    caption, chart = drawn
    return [Figure(name, title, caption + note, chart)]


def _selected(evidence: Evidence, where: Mapping[str, Any]) -> Evidence:
    """Return the evidence with only the runs that have the levels in `where`."""
    allowed = {factor: (level,) for factor, level in where.items()}
    usable, excluded = kept_by(evidence.usable, allowed), kept_by(evidence.excluded, allowed)
    return replace(evidence, usable=usable, excluded=excluded, levels_seen={}, fits={}, groups={})


def _roles(evidence: Evidence, response: Response, spec: ShownFigure) -> list[str]:
    return [role for role in spec.roles if is_measured(evidence, response, role)]


def _boxes(
    evidence: Evidence, spec: ShownFigure, response: Response, by: str,
    roles: list[tuple[str, str]],
) -> tuple[str, dict[str, Any]] | None:  # fmt: skip
    points: list[dict[str, Any]] = []
    for role, panel in roles:
        for frame in by_treatment(evidence, evidence.usable).values():
            values = values_of(evidence, frame, response, role)
            values = values[np.isfinite(values) & (values > 0)]
            if values.size == 0:
                continue
            treatment = {name: levels_of(frame, name)[0] for name in evidence.varied}
            points.append(
                {
                    "value": figures.rounded(float(np.median(values))),
                    "run": words.plural(int(values.size), "run"),
                    "treatment": evidence.treatment_title(treatment),
                    "colour": evidence.title(by, levels_of(frame, by)[0]),
                    "panel": panel,
                }
            )
    if not points:
        return None
    caption = (
        f"Each dot is the median of one treatment's runs. With {figures.BOX_RUNS_MIN} or more "
        "treatments, a box spans their quartiles and its whiskers span all treatments."
    )
    chart = figures.box_chart(
        points, titles_of(evidence, by), words.factor_title(by),
        [panel for _, panel in roles], PER_ROW, _axis(response) + ", log scale",
    )  # fmt: skip
    return caption, chart


def _scatter(
    evidence: Evidence, spec: ShownFigure, response: Response, by: str,
    roles: list[tuple[str, str]],
) -> tuple[str, dict[str, Any]] | None:  # fmt: skip
    frame, against = evidence.usable, resolve(spec.against, evidence.described)
    points: list[dict[str, Any]] = []
    for role, panel in roles:
        x_values = values_of(evidence, frame, against, role)
        if not np.isfinite(x_values).any():  # the response has no value per role
            x_values = values_of(evidence, frame, against, BOTH)
        y_values = values_of(evidence, frame, response, role)
        points += points_of(evidence, frame, x_values, y_values, by, panel)
    if not points:
        return None
    caption = (
        "Small points are runs; large points are the medians of the treatments. Both scales are "
        "logarithmic."
    )
    chart = figures.scatter_chart(
        points, titles_of(evidence, by), words.factor_title(by),
        [panel for _, panel in roles], PER_ROW, (_axis(against), _axis(response)),
    )  # fmt: skip
    return caption, chart


def _axis(response: Response) -> str:
    return axis_title(response.title, response.unit)

"""Figures as the study asks for them: boxes of treatments, and one response against another."""

from __future__ import annotations

from typing import Any

import numpy as np

from wattwire.analysis.dataset import Evidence, by_treatment, levels_of
from wattwire.analysis.metrics_by_role import BOTH, NOT_MEASURED, capital, is_measured, values_of
from wattwire.analysis.responses import Response, resolve
from wattwire.model import words
from wattwire.model.output_requests import ShownFigure
from wattwire.report import figures
from wattwire.report.figures.panels import titles_of
from wattwire.report.figures.scatter import points_of
from wattwire.report.parts import Figure, Text

PER_ROW = 2


def figure(evidence: Evidence, spec: ShownFigure, number: int) -> list[Figure | Text]:
    """The figure, of `instead` where nothing measured the response; else a sentence why not."""
    wanted = resolve(spec.response, evidence.described)
    response, roles = wanted, _roles(evidence, wanted, spec)
    if not roles and spec.instead:
        response = resolve(spec.instead, evidence.described)
        roles = _roles(evidence, response, spec)
    if not roles:
        return [Text(f"{spec.title}: {wanted.title} was {NOT_MEASURED}.")]
    told = ""
    if response is not wanted:
        told = f" {capital(wanted.title)} was {NOT_MEASURED}: {response.title} stands in its place"
        told += ", which is no energy." if wanted.energy else "."
    by = spec.by or evidence.primary
    panels = [role.replace("_", " ") if role != BOTH else "" for role in roles]
    draw = _scatter if spec.kind == "scatter" else _boxes
    made = draw(evidence, spec, response, by, list(zip(roles, panels, strict=True)))
    if made is None:
        return [Text(f"{spec.title}: no run holds both responses.")]
    says, chart = made
    title = spec.title
    if response is not wanted:
        title = f"{capital(response.title)} in place of {wanted.title}: {title}"
    return [Figure(f"laid-out-figure-{number}", title, says + told, chart)]


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
    says = (
        "Each dot is the median of one treatment's runs; a box spans the quartiles of the "
        f"treatments, from {figures.BOX_RUNS_MIN} of them on, its whiskers all of them."
    )
    chart = figures.box_chart(
        points, titles_of(evidence, by), words.factor_title(by),
        [panel for _, panel in roles], PER_ROW, _axis(response) + ", log scale",
    )  # fmt: skip
    return says, chart


def _scatter(
    evidence: Evidence, spec: ShownFigure, response: Response, by: str,
    roles: list[tuple[str, str]],
) -> tuple[str, dict[str, Any]] | None:  # fmt: skip
    frame, other = evidence.usable, resolve(spec.against, evidence.described)
    points: list[dict[str, Any]] = []
    for role, panel in roles:
        across = values_of(evidence, frame, other, role)
        if not np.isfinite(across).any():  # of the run as a whole, such as the time of its calls
            across = values_of(evidence, frame, other, BOTH)
        up = values_of(evidence, frame, response, role)
        points += points_of(evidence, frame, across, up, by, panel)
    if not points:
        return None
    says = "Small points are runs, large ones the medians of each treatment; both scales are log."
    chart = figures.scatter_chart(
        points, titles_of(evidence, by), words.factor_title(by),
        [panel for _, panel in roles], PER_ROW, (_axis(other), _axis(response)),
    )  # fmt: skip
    return says, chart


def _axis(response: Response) -> str:
    return f"{response.title} ({response.unit})" if response.unit else response.title

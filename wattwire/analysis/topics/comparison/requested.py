"""Choose the responses, the margin and the confidence level of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wattwire import stats
from wattwire.analysis.answering.confidence import interval_confidence
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.responses import Response, resolve
from wattwire.analysis.topics.comparison.decision import MARGIN
from wattwire.analysis.topics.comparison.notes import DEFAULT, REQUEST, STUDY, MarginNote
from wattwire.model import metrics
from wattwire.model.derived import column
from wattwire.model.errors import UsageError
from wattwire.model.metrics import is_printed

DEFAULTS = metrics.metrics_in(metrics.COMPARED)
"""Default responses of a comparison."""


@dataclass(frozen=True)
class Wanted:
    """Options of a comparison. If `margin` is None, the study's margin applies."""

    responses: tuple[str, ...] = ()
    margin: float | None = None
    across_machines: bool = False


def chosen_responses(
    sides: Sequence[Evidence], wanted: Wanted, defaults: Sequence[str]
) -> list[Response]:
    """Return the responses to compare: the requested responses, or the measured `defaults`.

    Another response of a study's question about its variants stays, even without a value. Raise
    UsageError if a requested response is missing on both sides or has no better direction, or if no
    default was measured.
    """
    available = sorted(set().union(*(_numeric_columns(side) for side in sides)))
    with_values = sorted(set().union(*(_with_values(side, available) for side in sides)))
    titles = {c: text.get("title", c) for side in sides for c, text in side.described.items()}
    names = [titles.get(column_name, column_name) for column_name in with_values]
    all_imported = all(side.imported for side in sides)
    if wanted.responses:
        requested = [_with_direction(sides, name) for name in wanted.responses]
        for response, name in zip(requested, wanted.responses, strict=True):
            is_absent = available and response.column not in available
            if is_absent or (all_imported and response.column not in with_values):
                raise _unknown_response(name, response, names)
            if not response.direction:
                raise UsageError(
                    f"--response {name}: whether a higher or a lower value is better is unknown. "
                    f"Import again with --higher-is-better {name} or --lower-is-better {name}."
                )
        return list(dict.fromkeys(requested))
    responses = [
        _with_direction(sides, name) if is_printed(name.partition(".")[0]) else resolve(name)
        for name in defaults
    ]
    if any(side.usable.height == 0 for side in sides):
        return responses[:1]  # the item of this treatment reports too few runs
    measured_responses = [
        response
        for response in responses
        if response.column not in DEFAULTS or all(_positive(side, response) for side in sides)
    ]
    if not measured_responses:
        raise UsageError(
            f"no default comparison: not every run has {' or '.join(defaults)}. Select responses "
            f"with --response; available: {', '.join(names) or 'nothing'}"
        )
    return measured_responses


def _with_direction(sides: Sequence[Evidence], name: str) -> Response:
    """Return a response with the better direction that the campaigns state; possibly none."""
    by_side = [resolve(_column_of(side, name), side.described) for side in sides]
    directed = [response for response in by_side if response.direction]
    if len({response.direction for response in directed}) > 1:
        raise UsageError(
            f"--response {name}: higher is better in one campaign and lower in the other. Use the "
            "same option --higher-is-better or --lower-is-better for both."
        )
    return (directed or by_side)[0]


def _column_of(side: Evidence, name: str) -> str:
    """Return the column of the summary for `name`, which can be a column of an imported table."""
    if name in side.described:
        return name
    title = " ".join(name.split())
    return next((c for c, text in side.described.items() if text.get("title") == title), name)


def _unknown_response(name: str, response: Response, available: Sequence[str]) -> UsageError:
    """Return the error for a response that is unknown, or known but not measured.

    `available` are the columns with values.
    """
    listed = ", ".join(available)
    if metrics.find(name) is not None:
        return UsageError(f"--response: no run has {response.column}; available: {listed}")
    hint = metrics.suggestion(name, available) or f" Available: {listed}"
    return UsageError(f'--response: unknown response "{name}".{hint}')


def _numeric_columns(evidence: Evidence) -> list[str]:
    frame = evidence.usable
    excluded_columns = ("block", "position", "attempt", "used")
    return [
        name
        for name, dtype in frame.schema.items()
        if dtype.is_numeric() and name not in excluded_columns
        if "." not in name or is_printed(name.partition(".")[0])
    ]


def _with_values(evidence: Evidence, names: Sequence[str]) -> list[str]:
    """Return the columns that have a value in a valid run."""
    frame = evidence.usable
    return [n for n in names if n in frame.columns and not np.isnan(column(frame, n)).all()]


def _positive(evidence: Evidence, response: Response) -> bool:
    """Return whether the response has values and all are positive, so that a ratio exists."""
    values = column(evidence.usable, response.column)
    known = values[~np.isnan(values)]
    return bool(known.size) and bool((known > 0).all())


def single_level(family: int, looks: int, *campaigns: Evidence) -> float:
    """Return the confidence level of each interval for simultaneous coverage.

    The correction is for all `family` intervals and for all looks.
    """
    return stats.bonferroni(
        stats.bonferroni(interval_confidence(*campaigns), looks), max(1, family)
    )


def margin_of(wanted: Wanted, sides: Sequence[Evidence]) -> MarginNote:
    """Return the requested margin, or else the margin that all studies share, or else MARGIN."""
    if wanted.margin is not None:
        return MarginNote(wanted.margin, REQUEST)
    margins = {side.study.answers.margin for side in sides}
    margin = margins.pop()
    if margin is not None and not margins:
        return MarginNote(float(margin), STUDY)
    return MarginNote(MARGIN, DEFAULT)

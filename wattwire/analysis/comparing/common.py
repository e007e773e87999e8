"""Provide the treatments, responses and noise floor of a campaign for all comparisons."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.answering.confidence import interval_confidence
from wattwire.analysis.carried import carried, why_void
from wattwire.analysis.carried import why_not as carried_why_not
from wattwire.analysis.comparing.decision import MARGIN, Incomplete
from wattwire.analysis.comparing.notes import MarginNote, MarginSource, SideNoise
from wattwire.analysis.dataset import CampaignReader, Evidence, all_levels
from wattwire.analysis.responses import Response, resolve
from wattwire.analysis.topics.controls.numbers import noise_floor, pairs
from wattwire.model import metrics
from wattwire.model.cores import CORES, FREE
from wattwire.model.derived import FloatArray, column
from wattwire.model.errors import UsageError
from wattwire.model.study import DEFAULT_LEVELS
from wattwire.model.variants import FACTOR
from wattwire.model.verdict import Outcome

DEFAULTS = metrics.metrics_in(metrics.COMPARED)
"""Default responses of a comparison."""


@dataclass(frozen=True)
class Wanted:
    """Options of a comparison. If `margin` is None, the study's margin applies."""

    responses: tuple[str, ...] = ()
    margin: float | None = None
    across_machines: bool = False


@dataclass(frozen=True)
class Runs:
    """The valid runs of one treatment: their row numbers and blocks in the summary's order."""

    levels: Mapping[str, Any]
    rows: tuple[int, ...]
    blocks: tuple[int, ...]


def identity_of(reader: CampaignReader) -> dict[str, Any]:
    """Return the identity of the campaign's cells and agent; {} for an imported campaign."""
    journal = getattr(reader, "journal", None)
    return (journal.get("identity") or {}) if journal is not None else {}


def judges_variants(evidence: Evidence) -> bool:
    """Return whether the study compares variants. An imported column may have the factor's name."""
    return not evidence.imported and len(evidence.factors.get(FACTOR, ())) > 1


def treatments_of(evidence: Evidence) -> dict[str, Runs]:
    """Return the valid runs of each planned treatment, by `treatment_key`; possibly none."""
    levels_by_run = {entry["run"]: all_levels(entry) for entry in evidence.designed}
    rows_by_key: dict[str, list[tuple[int, int]]] = {
        treatment_key(levels): [] for levels in levels_by_run.values()
    }
    levels_by_key = {treatment_key(levels): levels for levels in levels_by_run.values()}
    usable = evidence.usable
    for row, run in enumerate(usable["run"].to_list()):
        if run in levels_by_run:
            rows_by_key[treatment_key(levels_by_run[run])].append((row, int(usable["block"][row])))
    return {
        key: Runs(
            levels_by_key[key], tuple(row for row, _ in rows), tuple(block for _, block in rows)
        )
        for key, rows in rows_by_key.items()
    }


def treatment_key(levels: Mapping[str, Any], without: Sequence[str] = ()) -> str:
    """Return all levels as a JSON text that identifies the treatment.

    The text includes default levels, because imported campaigns do not store them, and a campaign
    does not store `cores` if its study omits the factor.
    """
    complete = {**DEFAULT_LEVELS, CORES: FREE, **levels}
    return json.dumps({k: v for k, v in complete.items() if k not in without}, sort_keys=True)


def values_of(evidence: Evidence, runs: Runs, response: Response) -> FloatArray:
    """Return the response of the treatment's valid runs, shape (runs,).

    The value is NaN if a run has no value, or too few messages for a percentile.
    """
    return carried(evidence.usable, response.column)[list(runs.rows)]


def why_not_compared(
    evidence: Evidence, runs: Sequence[Runs], response: Response
) -> stats.TooFew | stats.NotComputable | None:
    """Return the reason why the response of these runs is not compared, else None.

    A run is saturated, or has too few messages for a percentile, or all runs of a treatment died,
    or none has a value, as of a program that stopped printing its figure: more blocks add none.
    """
    for of_treatment in runs:
        if set(outcomes_of(evidence, of_treatment)) == {Outcome.DIED.value}:
            return stats.NotComputable("every run of one side failed")
    rows = [row for one_side in runs for row in one_side.rows]
    if not rows:
        return None
    frame = evidence.usable[rows]
    if refusal := why_void(frame, response.column) or carried_why_not(frame, response.column):
        return refusal
    for side in runs:
        if side.rows and np.isnan(values_of(evidence, side, response)).all():
            name = side.levels.get(FACTOR)
            return stats.NotComputable(f"no run{f' of {name}' if name else ''} has a value")
    return None


def outcomes_of(evidence: Evidence, runs: Runs) -> list[str]:
    """Return the outcome of each valid run of the treatment."""
    outcomes = evidence.usable["outcome"].to_list()
    return [str(outcomes[row]) for row in runs.rows]


def first_incomplete(*sides: tuple[Evidence, Runs]) -> Incomplete | None:
    """Return the first run that did not complete; None if all completed."""
    for evidence, runs in sides:
        names = evidence.usable["run"].to_list()
        for row in runs.rows:
            document = evidence.runs.get(names[row], {})
            if document.get("outcome", "completed") != "completed":
                detail = document.get("outcome_detail")
                return Incomplete(str(document["outcome"]), str(detail or ""))
    return None


def chosen_responses(
    sides: Sequence[Evidence], wanted: Wanted, defaults: Sequence[str] = DEFAULTS
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
    responses = [resolve(name) for name in defaults]
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
            f"--response {name}: higher is better in one campaign and lower in the other. Import "
            "both with the same option --higher-is-better or --lower-is-better."
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
        if "." not in name or metrics.is_printed(name.partition(".")[0])
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


def noise_of(evidence: Evidence, response: Response) -> float | None:
    """Return the noise floor as a |log ratio|; None without A/A control runs."""
    return noise_floor(np.log(pairs(evidence, response, "b", "a")), interval_confidence(evidence))


def side_noise(campaign: str | None, evidence: Evidence, response: Response) -> SideNoise:
    """Return the noise floor of one campaign and the number of its A/A pairs."""
    count = pairs(evidence, response, "b", "a").size
    return SideNoise(campaign, noise_of(evidence, response), count)


def constant(values: FloatArray) -> bool:
    """Return whether there are at least three values, all equal and positive."""
    return values.size >= 3 and bool(np.ptp(values) == 0) and bool(values[0] > 0)


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
        return MarginNote(wanted.margin, MarginSource.REQUEST)
    margins = {side.study.answers.margin for side in sides}
    margin = margins.pop()
    if margin is not None and not margins:
        return MarginNote(float(margin), MarginSource.STUDY)
    return MarginNote(MARGIN, MarginSource.DEFAULT)

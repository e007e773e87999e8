"""Check whether the model's errors satisfy the assumptions of the intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.answering.block_models import answering_fit, model_rows
from wattwire.analysis.dataset import Evidence, levels_of
from wattwire.analysis.responses import Response
from wattwire.model.derived import FloatArray
from wattwire.stats.diagnostics import DRAWS

ALARM = 0.05
SERIAL_ALARM = 0.01
SPREAD_MIN = 1.5


@dataclass(frozen=True)
class UnequalVariance:
    """A level whose scatter is `ratio` times the scatter of the factor's other levels."""

    response: Response
    factor: str
    level: Any
    ratio: float
    level_title: str = ""


@dataclass(frozen=True)
class Outlier:
    """A run whose error is `size` standard deviations.

    If runs are `averaged`, it is the mean of the runs of its treatment and block.
    """

    response: Response
    run: str
    size: float
    averaged: bool = False


@dataclass(frozen=True)
class Correlated:
    """A response whose errors of consecutive runs have this lag-one correlation."""

    response: Response
    correlation: float


@dataclass(frozen=True)
class Violations:
    """Violated assumptions about the errors.

    `has_blocks` is true if there are several blocks. With more than `runs_max` runs, equal variance
    is unchecked.
    """

    unequal: tuple[UnequalVariance, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    correlations: tuple[Correlated, ...] = ()
    has_blocks: bool = False
    is_unchecked: bool = False
    runs_max: int = stats.RUNS_MAX


def violations(evidence: Evidence, responses: Sequence[Response]) -> Violations:
    """Return the violations of the intervals' assumptions by the errors of the models."""
    unequal: list[UnequalVariance] = []
    outliers: list[Outlier] = []
    correlations: list[Correlated] = []
    # The false-positive rate over all checks of a report is 5 %.
    checks = max(1, len(responses) * len(evidence.varied))
    for response in responses:
        fit = answering_fit(evidence, response)
        if not isinstance(fit, stats.Fit):
            continue
        if fit.is_averaged:
            rows, _ = model_rows(evidence, evidence.usable, response)
        else:
            rows = np.flatnonzero(not_compared.compared(evidence, evidence.usable, response))
        unequal += _unequal_variances(evidence, response, fit, rows, checks)
        outlier = stats.far_out(fit)
        if isinstance(outlier, stats.FarOut):
            run = evidence.usable["run"].to_list()[int(rows[outlier.run])]
            outliers.append(Outlier(response, run, outlier.size, fit.is_averaged))
        if fit.is_averaged:
            continue  # means over runs of a block have no order
        # Imported rows may be sorted by treatment, so that neighbours share their interactions.
        is_sorted = evidence.imported and fit.block_count == 1
        errors = stats.within_treatments(fit) if is_sorted else fit
        correlation = stats.serial_correlation(errors, _run_order(evidence)[rows])
        if isinstance(correlation, stats.SerialCorrelation) and correlation.p < SERIAL_ALARM:
            correlations.append(Correlated(response, correlation.correlation))
    runs = evidence.usable.height
    return Violations(
        tuple(unequal),
        tuple(outliers),
        tuple(correlations),
        runs > 0 and evidence.usable["block"].n_unique() > 1,
        runs > stats.RUNS_MAX,
    )


def _unequal_variances(
    evidence: Evidence, response: Response, fit: stats.Fit, rows: NDArray[np.int64], checks: int
) -> Iterator[UnequalVariance]:
    # A resampling test cannot give a p-value below 1/(DRAWS + 1).
    alarm = max(ALARM / checks, 1.0 / (DRAWS + 1))
    run_levels = {factor: levels_of(evidence.usable, factor) for factor in evidence.varied}
    levels = {factor: [of_runs[row] for row in rows] for factor, of_runs in run_levels.items()}
    for factor, spread in stats.spreads_between(fit, levels).items():
        if isinstance(spread, stats.Spread) and spread.p <= alarm and spread.ratio >= SPREAD_MIN:
            title = evidence.title(factor, spread.noisiest)
            yield UnequalVariance(response, factor, spread.noisiest, spread.ratio, title)


def _run_order(evidence: Evidence) -> FloatArray:
    """Return the position of each valid run in the planned run order, shape (runs,)."""
    position_of = {entry["run"]: position for position, entry in enumerate(evidence.planned)}
    return np.array(
        [position_of.get(run, 0) for run in evidence.usable["run"].to_list()], dtype=float
    )

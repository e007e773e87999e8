"""Checks of the model's errors against the assumptions of the intervals."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis import not_compared
from wattwire.analysis.contrasts import (
    answering_fit,
)
from wattwire.analysis.dataset import Evidence, levels_of
from wattwire.analysis.responses import Response
from wattwire.model import words
from wattwire.model.derived import FloatArray
from wattwire.stats.diagnostics import DRAWS

ALARM = 0.05
SERIAL_ALARM = 0.01
SPREAD_MIN = 1.5


def cautions(evidence: Evidence, responses: Sequence[Response]) -> list[str]:
    """Return a sentence for each assumption of the intervals that the errors violate."""
    spreads, outliers, serial = [], [], []
    # A report makes many checks: all together may raise a false alarm in one report of twenty.
    checks = max(1, len(responses) * len(evidence.varied))
    for response in responses:
        fit = answering_fit(evidence, response)
        if not isinstance(fit, stats.Fit):
            continue
        compared = not_compared.compared(evidence, evidence.usable, response)
        spreads += _spread_phrases(evidence, response, fit, compared, checks)
        outlier = stats.far_out(fit)
        if isinstance(outlier, stats.FarOut):
            run = evidence.usable["run"].to_list()[int(np.flatnonzero(compared)[outlier.run])]
            size = words.number(outlier.size, 2)
            outliers.append(f"{run} in {response.title}, {size} standard deviations")
        order = np.arange(compared.size)[compared]
        correlation = stats.serial_correlation(fit, _run_order(evidence)[order])
        if isinstance(correlation, stats.SerialCorrelation) and correlation.p < SERIAL_ALARM:
            serial.append(
                f"{response.title}, correlation {words.number(correlation.correlation, 2)}"
            )
    sentences = []
    if evidence.usable.height > stats.RUNS_MAX:
        sentences.append(
            "Equal variance of the levels and autocorrelation of the runs were not checked: the "
            f"checks are limited to {words.count(stats.RUNS_MAX)} runs."
        )
    if spreads:
        sentences.append(
            f"One level scatters more than the others ({'; '.join(spreads)}): because the error is "
            "pooled, intervals that involve it may be too narrow, and the others too wide."
        )
    if outliers:
        sentences.append(
            f"A run is an outlier ({'; '.join(outliers)}): it widens the intervals, and affects "
            "the rank-based results less."
        )
    if serial:
        sentences.append(
            f"Consecutive runs have correlated errors ({'; '.join(serial)}): intervals may cover "
            "the true value less often than their confidence level."
        )
    return sentences


def _spread_phrases(
    evidence: Evidence, response: Response, fit: stats.Fit, compared: Any, checks: int
) -> list[str]:
    """Return phrases on the levels that scatter more than the others of their factor."""
    # A resampling test cannot give a p below 1/(DRAWS + 1).
    alarm = max(ALARM / checks, 1.0 / (DRAWS + 1))
    phrases = []
    levels = {
        factor: list(itertools.compress(levels_of(evidence.usable, factor), compared))
        for factor in evidence.varied
    }
    for factor, spread in stats.spreads_between(fit, levels).items():
        if isinstance(spread, stats.Spread) and spread.p <= alarm and spread.ratio >= SPREAD_MIN:
            level, ratio = evidence.title(factor, spread.noisiest), words.number(spread.ratio, 2)
            phrases.append(f"{level} in {response.title}, {ratio} times as much")
    return phrases


def _run_order(evidence: Evidence) -> FloatArray:
    """Return the position of each usable run in the planned run order, shape (runs,)."""
    position_of = {entry["run"]: position for position, entry in enumerate(evidence.planned)}
    return np.array(
        [position_of.get(run, 0) for run in evidence.usable["run"].to_list()], dtype=float
    )

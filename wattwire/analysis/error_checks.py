"""What the errors look like: whether they differ from what the intervals assume."""

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
    """A sentence for each way in which the errors differ from what the intervals assume."""
    spread, far, serial = [], [], []
    # A page asks many times: together they may warn of nothing in one page of twenty.
    asked = max(1, len(responses) * len(evidence.varied))
    for response in responses:
        fit = answering_fit(evidence, response)
        if not isinstance(fit, stats.Fit):
            continue
        known = not_compared.compared(evidence, evidence.usable, response)
        spread += _wider(evidence, response, fit, known, asked)
        outlier = stats.far_out(fit)
        if isinstance(outlier, stats.FarOut):
            run = evidence.usable["run"].to_list()[int(np.flatnonzero(known)[outlier.run])]
            size = words.number(outlier.size, 2)
            far.append(f"{run} in {response.title}, {size} standard deviations")
        order = np.arange(known.size)[known]
        found = stats.serial_correlation(fit, _execution(evidence)[order])
        if isinstance(found, stats.SerialCorrelation) and found.p < SERIAL_ALARM:
            serial.append(f"{response.title}, correlation {words.number(found.correlation, 2)}")
    told = []
    if evidence.usable.height > stats.RUNS_MAX:
        told.append(
            f"Whether levels scatter alike, and whether runs resemble their neighbours, is looked "
            f"at up to {words.count(stats.RUNS_MAX)} runs: here nobody looked."
        )
    if spread:
        told.append(
            f"One level scatters more than the others ({'; '.join(spread)}): with the error "
            "pooled, answers that involve it may be less certain than their intervals say, and "
            "the others more."
        )
    if far:
        told.append(
            f"A run stands far out ({'; '.join(far)}): intervals are wider for it, and what "
            "ranks say is moved less."
        )
    if serial:
        told.append(
            f"Runs that followed each other have like errors ({'; '.join(serial)}): intervals "
            "may hold the truth less often than they say."
        )
    return told


def _wider(
    evidence: Evidence, response: Response, fit: stats.Fit, known: Any, asked: int
) -> list[str]:
    """Levels that scatter more than the others of their factor, in words."""
    # Drawn samples give no p below 1/(DRAWS + 1).
    alarm = max(ALARM / asked, 1.0 / (DRAWS + 1))
    told = []
    levels = {
        factor: list(itertools.compress(levels_of(evidence.usable, factor), known))
        for factor in evidence.varied
    }
    for factor, found in stats.spreads_between(fit, levels).items():
        if isinstance(found, stats.Spread) and found.p <= alarm and found.ratio >= SPREAD_MIN:
            level, ratio = evidence.title(factor, found.noisiest), words.number(found.ratio, 2)
            told.append(f"{level} in {response.title}, {ratio} times as much")
    return told


def _execution(evidence: Evidence) -> FloatArray:
    """Place of each usable run in the order of the plan, shape (runs,)."""
    place = {entry["run"]: at for at, entry in enumerate(evidence.planned)}
    return np.array([place.get(run, 0) for run in evidence.usable["run"].to_list()], dtype=float)

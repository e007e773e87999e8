"""Evaluate control runs: the A/A difference of one treatment, the cost of sampling, and the noise.

Each block measures a treatment twice under two labels (A/A), and a third time with a paused
sampler. The noise floor is the limit of the A/A difference's interval that is farther from 0,
because the estimate may be near zero by chance. wattwire reports no smaller effect as a difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis.answering.confidence import CONFIDENCE, interval_confidence
from wattwire.analysis.carried import carried
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.json_values import interval_values
from wattwire.analysis.responses import CPU, LATENCY_P50, Response, measured, question_responses
from wattwire.model import words
from wattwire.model.derived import FloatArray

PAIRS_MIN = 3
"""Minimum number of pairs for an interval. Fewer pairs give only a geometric mean."""
UNASKED = (LATENCY_P50, CPU)
"""Responses that control runs compare if the study has no question."""
Ratio = stats.Interval | stats.TooFew | stats.NotComputable | float | None
"""A geometric mean of paired ratios: an interval from PAIRS_MIN pairs on, a number with fewer, the
reason why there is none, or None without pairs.
"""


@dataclass(frozen=True)
class Compared:
    """The ratios of control runs in one response: B / A, and with the sampler / without it.

    `is_asked` is false if no question names the response.
    """

    response: str
    response_title: str
    is_asked: bool
    same: Ratio
    same_pairs: int
    sampled: Ratio
    sampled_pairs: int


@dataclass(frozen=True)
class Controls:
    """Results of the control runs, which measure one `treatment` ("" if the study has only one)."""

    is_planned: bool = False
    treatment: str = ""
    responses: tuple[Compared, ...] = ()
    pairs_min: int = PAIRS_MIN
    confidence: float = CONFIDENCE


def controls(evidence: Evidence) -> Controls:
    """Return the ratios of control runs in each response of the questions that they have."""
    planned = evidence.controls_planned
    if not planned:
        return Controls()
    treatment = evidence.treatment_title(planned[0]["treatment"])
    return Controls(True, treatment, tuple(_compared(evidence)))


def stored(result: Controls) -> dict[str, Any]:
    """Return the ratios with an interval as JSON values; the others are null."""
    return {
        "controls": [
            {
                "response": compared.response,
                "identical_labels": _stored_ratio(compared.same),
                "sampling": _stored_ratio(compared.sampled),
            }
            for compared in result.responses
            if compared.is_asked
        ]
    }


def _stored_ratio(ratio: Ratio) -> dict[str, Any] | None:
    return interval_values(ratio) if isinstance(ratio, stats.Interval) else None


def _compared(evidence: Evidence) -> Iterator[Compared]:
    asked = question_responses(evidence)
    confidence = interval_confidence(evidence)
    for response in asked or UNASKED:
        if measured(evidence.controls, response):
            same = control_pairs(evidence, response, "b", "a")
            sampled = control_pairs(evidence, response, "a", "unsampled")
            yield Compared(
                response.column,
                response.title,
                bool(asked),
                _ratio(*same, response.unit, confidence),
                len(same[0]),
                _ratio(*sampled, response.unit, confidence),
                len(sampled[0]),
            )


def _ratio(upper: FloatArray, lower: FloatArray, unit: str, confidence: float) -> Ratio:
    """Return the geometric mean of paired ratios. `upper` and `lower` have shape (pairs,).

    If a value has no logarithm, the result is NotComputable with the mean difference in `unit`.
    """
    zeros = int(np.sum((upper <= 0) | (lower <= 0)))
    if zeros:
        mean = f"{words.number(float(np.mean(upper - lower)))} {unit}".rstrip()
        return stats.NotComputable(
            f"no ratio, because values are zero or negative in {words.plural(zeros, 'pair')}; "
            f"mean difference {mean}"
        )
    if len(upper) >= PAIRS_MIN:
        return stats.geometric_mean(upper / lower, confidence)
    return math.exp(float(np.mean(np.log(upper / lower)))) if len(upper) else None


def pairs(evidence: Evidence, response: Response, numerator: str, denominator: str) -> FloatArray:
    """Return numerator / denominator for each block that has both control runs, shape (pairs,)."""
    upper, lower = control_pairs(evidence, response, numerator, denominator)
    positive = (upper > 0) & (lower > 0)
    return upper[positive] / lower[positive]


def differences(evidence: Evidence, response: Response) -> FloatArray:
    """Return B − A of each block with both A/A runs, in the response's unit, shape (pairs,)."""
    upper, lower = control_pairs(evidence, response, "b", "a")
    return upper - lower


def control_pairs(
    evidence: Evidence, response: Response, first: str, second: str
) -> tuple[FloatArray, FloatArray]:
    """Return the values of both control runs for blocks with both, shape (pairs,) each.

    Blocks with a value that is not finite are omitted.
    """
    frame = evidence.controls
    values = pl.Series("value", carried(frame, response.column))
    known = frame.select("block", "control").with_columns(values)
    known = known.filter(pl.col("value").is_finite())
    sides = [known.filter(pl.col("control") == name) for name in (first, second)]
    joined = sides[0].join(sides[1], on="block").sort("block")
    return joined["value"].to_numpy(), joined["value_right"].to_numpy()


def noise_floor(differences: FloatArray, confidence: float) -> float | None:
    """Return the largest absolute limit of the mean's t interval at `confidence`.

    `differences` has shape (pairs,). With fewer than PAIRS_MIN pairs, the result is the largest
    |difference|. Without pairs, it is None.
    """
    if differences.size < PAIRS_MIN:
        return float(np.max(np.abs(differences))) if differences.size else None
    (interval,) = stats.block_intervals([differences], confidence)
    if not isinstance(interval, stats.Interval):
        return float(np.max(np.abs(differences)))
    return max(abs(interval.low), abs(interval.high))


def noise(evidence: Evidence, scale: str = "log") -> dict[str, float]:
    """Return the noise floor of each response of the questions, by column.

    The noise floor is a |log ratio| if `scale` is "log", or a |difference| in the response's unit
    if it is "plain".
    """
    floors = {}
    for response in question_responses(evidence, with_shares=scale == "plain"):
        values = (
            differences(evidence, response)
            if scale == "plain"
            else np.log(pairs(evidence, response, "b", "a"))
        )
        floor = noise_floor(values, interval_confidence(evidence))
        if floor is not None:
            floors[response.column] = floor
    return floors

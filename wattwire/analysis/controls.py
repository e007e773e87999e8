"""Evaluate control runs: the A/A difference of one treatment with two labels, and the noise floor.

The noise floor is the limit of the A/A difference's interval that is farther from 0, because the
estimate may be near zero by chance. wattwire reports no smaller effect as a difference.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis.answering.confidence import interval_confidence
from wattwire.analysis.carried import carried
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.responses import Response, resolve
from wattwire.model.derived import FloatArray

PAIRS_MIN = 3
"""Minimum number of pairs for an interval. Fewer pairs give only a geometric mean."""


def question_responses(evidence: Evidence, with_shares: bool = False) -> list[Response]:
    """Return the distinct responses of the study's questions that have ratios.

    If `with_shares` is set, shares are included, although they have only differences.
    """
    names = [name for question in evidence.study.questions for name in question.responses]
    responses = dict.fromkeys(resolve(name) for name in names)
    return [response for response in responses if with_shares or not response.share]


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

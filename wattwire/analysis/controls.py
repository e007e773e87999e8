"""The control runs as numbers: what two identical labels differ by, and the noise floor of ratios.

No effect is claimed that is smaller than what the A/A difference may be: the far end of its
interval, since its estimate may be near zero by luck.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.responses import Response, resolve
from wattwire.model.derived import FloatArray, column

PAIRS_MIN = 3
"""From so many pairs on there is an interval; below, the geometric mean alone is printed."""


CONFIDENCE = 0.95


def asked_responses(evidence: Evidence, with_shares: bool = False) -> list[Response]:
    """Every response of the study's questions that a ratio can be taken of, once each.

    Of shares there are differences only: they are in it `with_shares`.
    """
    questions: Iterable[Mapping[str, Any]] = evidence.study.get("question", [])
    names = [name for question in questions for name in question.get("responses", [])]
    found = dict.fromkeys(resolve(name) for name in names)
    return [response for response in found if with_shares or not response.share]


def pairs(evidence: Evidence, response: Response, one: str, other: str) -> FloatArray:
    """Ratio one/other of each block that holds both control runs, shape (pairs,)."""
    upper, lower = control_pairs(evidence, response, one, other)
    positive = (upper > 0) & (lower > 0)
    return upper[positive] / lower[positive]


def differences(evidence: Evidence, response: Response) -> FloatArray:
    """B − A of each block that holds both identical labels, in the response's unit."""
    upper, lower = control_pairs(evidence, response, "b", "a")
    return upper - lower


def control_pairs(
    evidence: Evidence, response: Response, one: str, other: str
) -> tuple[FloatArray, FloatArray]:
    """Both control runs of each block that holds them with a finite value, shape (pairs,) each."""
    frame = evidence.controls
    values = pl.Series("value", column(frame, response.column))
    known = frame.select("block", "control").with_columns(values)
    known = known.filter(pl.col("value").is_finite())
    sides = [known.filter(pl.col("control") == name) for name in (one, other)]
    joined = sides[0].join(sides[1], on="block").sort("block")
    return joined["value"].to_numpy(), joined["value_right"].to_numpy()


def noise_floor(differences: FloatArray) -> float | None:
    """Return the end of the mean's 95 % t interval that is farther from 0; `differences` (pairs,).

    Below PAIRS_MIN pairs there is no interval: the largest |difference|. None without a pair.
    """
    if differences.size < PAIRS_MIN:
        return float(np.max(np.abs(differences))) if differences.size else None
    (interval,) = stats.block_intervals([differences], CONFIDENCE)
    if not isinstance(interval, stats.Interval):
        return float(np.max(np.abs(differences)))
    return max(abs(interval.low), abs(interval.high))


def noise(evidence: Evidence, scale: str = "log") -> dict[str, float]:
    """The noise floor of each response asked for, by its column, on the scale of log ratios.

    On the "plain" scale that of differences, in the response's unit.
    """
    found = {}
    for response in asked_responses(evidence, with_shares=scale == "plain"):
        values = (
            differences(evidence, response)
            if scale == "plain"
            else np.log(pairs(evidence, response, "b", "a"))
        )
        floor = noise_floor(values)
        if floor is not None:
            found[response.column] = floor
    return found

"""The control runs: what two identical labels differ by, and what sampling costs.

Each block measures one treatment twice under two labels (A/A), and once more with the sampler
silent between the window's edges. No effect is claimed that is smaller than what the A/A difference
may be: the far end of its interval, since its estimate may be near zero by luck.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.model.derived import FloatArray, column
from wattwire.report import words
from wattwire.report.evidence import Evidence
from wattwire.report.parts import Column, Section, Table, Text
from wattwire.report.responses import Response, measured, resolve

PAIRS_MIN = 3
"""From so many pairs on there is an interval; below, the geometric mean alone is printed."""

CONFIDENCE = 0.95
UNASKED = ("latency_p50_us", "cpu_us_per_message")
"""What the control runs are compared by where the study asks no question."""


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
    upper, lower = _both(evidence, response, one, other)
    positive = (upper > 0) & (lower > 0)
    return upper[positive] / lower[positive]


def differences(evidence: Evidence, response: Response) -> FloatArray:
    """B − A of each block that holds both identical labels, in the response's unit."""
    upper, lower = _both(evidence, response, "b", "a")
    return upper - lower


def _both(
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


def section(evidence: Evidence) -> Section | None:
    """The page's part on control runs; None where the campaign has none."""
    planned = [entry for entry in evidence.planned if entry.get("control")]
    if not planned:
        return None
    part = Section("controls", "Control runs")
    treatment = evidence.treatment_title(planned[0]["treatment"])
    part.parts.append(
        Text(
            f"Each block also measured one treatment{f' ({treatment})' if treatment else ''} "
            "twice under two labels, A and B, and once with the sampler silent within the "
            "window. Whatever A and B differ by is noise: an effect is claimed above only where "
            "it is larger than the far end of the interval of B / A. "
            "These runs are in no other table of responses."
        )
    )
    rows = [
        _row(evidence, response)
        for response in asked_responses(evidence) or [resolve(name) for name in UNASKED]
        if measured(evidence.controls, response)
    ]
    if rows:
        part.parts.append(_table(rows))
    else:
        part.parts.append(Text("No control run can be used.", "warning"))
    return part


def _row(evidence: Evidence, response: Response) -> dict[str, Any]:
    same = _both(evidence, response, "b", "a")
    sampled = _both(evidence, response, "a", "unsampled")
    return {
        "response": response.title,
        "same": _ratio(*same, response.unit),
        "same_pairs": len(same[0]),
        "sampled": _ratio(*sampled, response.unit),
        "sampled_pairs": len(sampled[0]),
    }


def _ratio(upper: FloatArray, lower: FloatArray, unit: str) -> Any:
    """The ratio of pairs, shape (pairs,) each; their mean difference where one has no logarithm."""
    bad = int(np.sum((upper <= 0) | (lower <= 0)))
    if bad:
        mean = f"{words.number(float(np.mean(upper - lower)))} {unit}".rstrip()
        return stats.NotComputable(
            f"no ratio: zero or negative in {words.plural(bad, 'pair')}; they differ by {mean}"
        )
    if len(upper) >= PAIRS_MIN:
        return stats.geometric_mean(upper / lower)
    return math.exp(float(np.mean(np.log(upper / lower)))) if len(upper) else None


def _table(rows: list[dict[str, Any]]) -> Table:
    return Table(
        "controls",
        "What two identical labels differ by, and what sampling costs",
        [
            Column("response", "response"),
            Column("same", "B / A [interval]", "measured"),
            Column("same_pairs", "pairs", "measured"),
            Column("sampled", "A with sampler / without [interval]", "measured"),
            Column("sampled_pairs", "pairs of it", "measured"),
        ],
        rows,
        f"Geometric mean over blocks; t interval at {words.confidence(0.95)} from {PAIRS_MIN} "
        "pairs on, below that the mean alone. CPU time without the sampler is read at the "
        "window's edges.",
    )

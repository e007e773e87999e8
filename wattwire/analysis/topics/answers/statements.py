"""Compute what a sentence on an answer states: its sides, its interval and the means of both."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from wattwire import stats
from wattwire.analysis.answering.answer_types import NUMBER, Answer
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.responses import Response
from wattwire.model.derived import column
from wattwire.model.flows import COLUMN

BY_RANKS = ("blocks", "two samples")
"""Kinds of differences that are typical differences by ranks."""
FAR_APART = 10.0
"""A statement has both means if the ratio is at least this value or at most its reciprocal."""
AGREEMENT = 0.02
"""Largest |log| of a ratio over the quotient of the means of a statement."""
ROUNDING = 1e-12
"""Share of the largest value of a response up to which a difference is a rounding error."""
Means = tuple[float | None, float | None]


@dataclass(frozen=True)
class Statement:
    """An answer as a sentence states it: with the larger side of a ratio first.

    `interval` is that of the ratio, or of the difference: in percentage points for a share, else in
    the response's unit. It is None without a number. Each mean is over the common treatments of
    both levels, or None. `family` is the number of answers over which the interval is simultaneous
    at `confidence`.
    """

    answer: Answer
    level_title: str
    baseline_title: str
    interval: stats.Interval | None
    family: int
    level_mean: float | None = None
    baseline_mean: float | None = None
    is_rounding: bool = False
    confidence: float = CONFIDENCE

    @property
    def response(self) -> Response:
        """The response of the answer."""
        return self.answer.response

    @property
    def reason(self) -> str:
        """The reason why the answer has no number; "" if it has one."""
        return "" if isinstance(self.answer.result, NUMBER) else str(self.answer.result)

    @property
    def is_difference(self) -> bool:
        """Whether the answer is a difference."""
        return isinstance(self.answer.result, stats.Difference)

    @property
    def is_of_flow(self) -> bool:
        """Whether the response is that of a flow, so that "of a level" would be ambiguous."""
        return COLUMN.fullmatch(self.response.column) is not None

    @property
    def is_in_points(self) -> bool:
        """Whether the difference is in percentage points."""
        return self.response.share or self.response.unit == "%"

    @property
    def is_typical(self) -> bool:
        """Whether the difference is a typical difference by ranks, and not one of means."""
        return self.kind in BY_RANKS

    @property
    def has_means(self) -> bool:
        """Whether the statement has the means of both levels."""
        return self.level_mean is not None or self.is_difference and self.response.share

    @property
    def amount(self) -> float:
        """The absolute difference."""
        return abs(self.interval.estimate) if self.interval else math.nan

    @property
    def is_higher(self) -> bool:
        """Whether the level has the higher value."""
        return self.interval is not None and self.interval.estimate > 0

    @property
    def kind(self) -> str:
        """The kind of the contrast; "" without a number."""
        result = self.answer.result
        return result.kind if isinstance(result, NUMBER) else ""

    @property
    def is_of_means(self) -> bool:
        """Whether runs of the same treatment and block are averaged."""
        result = self.answer.result
        return isinstance(result, NUMBER) and result.averaged

    @property
    def runs(self) -> int:
        """The number of runs of the contrast."""
        result = self.answer.result
        return result.run_count if isinstance(result, NUMBER) else 0

    @property
    def blocks(self) -> int:
        """The number of blocks of the contrast."""
        result = self.answer.result
        return result.block_count if isinstance(result, NUMBER) else 0


def statement(evidence: Evidence, answer: Answer, family: int) -> Statement:
    """Return what a sentence states of an answer of a family of answers."""
    result = answer.result
    if isinstance(result, stats.Difference):
        return _difference(evidence, answer, result, family)
    if isinstance(result, stats.Ratio):
        interval = above_one(result.interval)
        if interval is not result.interval:
            sides = replace(answer, level=answer.baseline, baseline=answer.level)
        else:
            sides = answer
        means = _geometric_means(evidence, sides, interval)
        return Statement(answer, *_titles(evidence, sides), interval, family, *means)
    return Statement(answer, *_titles(evidence, answer), None, family)


def statement_with_all(evidence: Evidence, answer: Answer, family: int) -> Statement | None:
    """Return the answer that includes excluded runs, or None if it has no number."""
    if not isinstance(answer.with_all, NUMBER):
        return None
    return statement(evidence, replace(answer, result=answer.with_all), family)


def above_one(interval: stats.Interval) -> stats.Interval:
    """Return the interval of the ratio, or of the inverse ratio if the ratio is below 1.

    The result is the interval itself if its inverse would have no upper limit. With the larger side
    first, no reader has to invert a ratio.
    """
    if interval.estimate >= 1 or not interval.low > 0:
        return interval
    low, centre, high = 1 / interval.high, 1 / interval.estimate, 1 / interval.low
    return replace(interval, low=low, estimate=centre, high=high)


def _titles(evidence: Evidence, answer: Answer) -> tuple[str, str]:
    level, baseline = answer.level, answer.baseline
    return evidence.title(answer.factor, level), evidence.title(answer.factor, baseline)


def _difference(
    evidence: Evidence, answer: Answer, result: stats.Difference, family: int
) -> Statement:
    interval: stats.Interval = result.interval
    means: Means = (None, None)
    if answer.response.share:
        means = _arithmetic_means(evidence, answer)
        low, centre, high = (
            100 * value for value in (interval.low, interval.estimate, interval.high)
        )
        interval = replace(interval, low=low, estimate=centre, high=high)
    titles, is_rounding = _titles(evidence, answer), _is_rounding(evidence, answer, result)
    return Statement(answer, *titles, interval, family, *means, is_rounding)


def _is_rounding(evidence: Evidence, answer: Answer, result: stats.Difference) -> bool:
    """Return whether a difference is only the rounding error of sums of the runs' values."""
    values = column(evidence.usable, answer.response.column)
    largest = float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))
    return abs(result.interval.estimate) <= ROUNDING * largest


def _geometric_means(evidence: Evidence, answer: Answer, interval: stats.Interval) -> Means:
    """Return the geometric means of both levels over their common treatments, in their unit.

    They are None unless the levels differ by at least the factor FAR_APART. They are also None if
    their quotient is not the ratio, which happens if runs are missing in some blocks.
    """
    if 1 / FAR_APART < interval.estimate < FAR_APART:
        return None, None
    logs: list[tuple[float, float]] = []
    for sides in _common_treatments(evidence, answer):
        values = [column(side, answer.response.column) for side in sides]
        if all((np.isfinite(side) & (side > 0)).all() for side in values):
            logs.append((float(np.mean(np.log(values[0]))), float(np.mean(np.log(values[1])))))
    if not logs:
        return None, None
    level, baseline = map(float, np.exp(np.mean(logs, axis=0)))
    if abs(math.log(level / baseline / interval.estimate)) > AGREEMENT:
        return None, None
    return level, baseline


def _arithmetic_means(evidence: Evidence, answer: Answer) -> Means:
    """Return the means at both levels over their common treatments; None without any value."""
    pairs = _common_treatments(evidence, answer)
    means: list[float | None] = []
    for frames in zip(*pairs, strict=True) if pairs else ([], []):
        side_values = np.concatenate(
            [column(frame, answer.response.column) for frame in frames] or [np.array([])]
        )
        side_values = side_values[np.isfinite(side_values)]
        means.append(float(np.mean(side_values)) if side_values.size else None)
    level, baseline = means
    return level, baseline


def _common_treatments(
    evidence: Evidence, answer: Answer
) -> list[tuple[pl.DataFrame, pl.DataFrame]]:
    """Return the runs at the level and at the baseline, for each treatment that has both."""
    groups = by_treatment(evidence, evidence.usable)
    index = evidence.varied.index(answer.factor)
    level, baseline = (
        evidence.word(answer.factor, side) for side in (answer.level, answer.baseline)
    )
    partners = {key: (*key[:index], baseline, *key[index + 1 :]) for key in groups}
    return [
        (groups[key], groups[partner])
        for key, partner in partners.items()
        if key[index] == level and partner in groups
    ]

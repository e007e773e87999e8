"""Detect levels of another factor that contradict each other, so that no common answer holds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from wattwire import stats
from wattwire.analysis.answering.answer_types import NUMBER, Answer, Answers, Result
from wattwire.analysis.answering.confidence import interval_confidence
from wattwire.analysis.answering.single_contrast import contrast
from wattwire.analysis.dataset import Evidence

CHANGE_MIN = 1.25
"""Minimum quotient of a ratio's values at two levels that counts as a change."""


def strata_confidence(evidence: Evidence, factor: str) -> float:
    """Return the level of a contrast of `factor` at one level of another varied factor."""
    level_counts = [len(evidence.factors[name]) for name in evidence.varied if name != factor]
    return confidence_at_levels(level_counts, interval_confidence(evidence))


def confidence_at_levels(level_counts: Sequence[int], confidence: float) -> float:
    """Return the level of a contrast at one level of other factors, at least `confidence`.

    `level_counts` has the number of levels of each other factor. If the contrast is the same at all
    levels, two of its intervals are disjoint in at most the share 1 − `confidence` of campaigns.
    """
    several = [count for count in level_counts if count > 1]
    alarm_rate = (1.0 - confidence) / max(1, len(several))
    levels = (stats.disjoint_confidence(count, alarm_rate) for count in several)
    return max((confidence, *levels))


def contrast_at(evidence: Evidence, answer: Answer, other: str, level: Any) -> Result:
    """Return the cached contrast of an answer at one level of the factor `other`."""
    key = (*answer.key, str(answer.baseline), other, str(level))
    if key not in evidence.fits:
        confidence = strata_confidence(evidence, answer.factor)
        evidence.fits[key] = contrast(evidence, evidence.usable, answer, confidence, (other, level))
    result: Result = evidence.fits[key]
    return result


def disagreeing_factor(evidence: Evidence, answers: Answers, answer: Answer) -> str:
    """Return the first other varied factor whose levels contradict each other or the answer."""
    is_ratio = isinstance(answer.result, stats.Ratio)
    for other in evidence.varied:
        results = [
            contrast_at(evidence, answer, other, level)
            for level in (evidence.factors[other] if other != answer.factor else ())
        ]
        numbers = [result for result in results if isinstance(result, NUMBER)]
        strata = [replace(answer, result=result) for result in numbers]
        conclusions = [(answers.conclusion(item), item.interval) for item in strata]
        margin = answers.margin if is_ratio else None
        if contradict(conclusions, answers.conclusion(answer), margin, 1.0 if is_ratio else 0.0):
            return other
    return ""


def contradict(
    levels: Sequence[tuple[str, stats.Interval]],
    pooled: str,
    margin: float | None,
    no_effect: float = 1.0,
) -> bool:
    """Return whether the conclusions at `levels` contradict each other or the `pooled` conclusion.

    `levels` contains the conclusion and the interval at each level, at `confidence_at_levels`: each
    contradiction needs intervals that are disjoint.
    Levels contradict each other if one is higher and another lower than the baseline, or if one is
    equivalent and another differs, with ratios at least CHANGE_MIN apart. A level contradicts an
    equivalent conclusion if its whole interval is beyond the margin. Without a margin, as for
    differences, no conclusion is "equivalent".
    """
    different = [interval for conclusion, interval in levels if conclusion == "different"]
    if len({interval.estimate > no_effect for interval in different}) > 1:
        return True
    if margin is None:
        return False
    equivalent = [interval for conclusion, interval in levels if conclusion == "equivalent"]
    if any(_far_apart(*pair) for pair in itertools.product(equivalent, different)):
        return True
    return pooled == "equivalent" and any(
        interval.low > 1 + margin or interval.high < 1 / (1 + margin) for interval in different
    )


def _far_apart(one: stats.Interval, other: stats.Interval) -> bool:
    """Return whether two ratios are at least CHANGE_MIN apart and their intervals are disjoint."""
    distance = abs(math.log(one.estimate / other.estimate))
    is_disjoint = one.high < other.low or other.high < one.low
    return is_disjoint and distance >= math.log(CHANGE_MIN)

"""Choose the level of a factor with which the other levels are compared."""

from __future__ import annotations

from typing import Any

from wattwire.analysis import not_compared
from wattwire.analysis.dataset import Evidence, levels_of, levels_run, same_level
from wattwire.analysis.responses import Response


def planned_baseline(evidence: Evidence, factor: str) -> Any:
    """Return the factor's baseline level: the study's baseline, or else the first level."""
    stated = evidence.study.answers.baseline.get(factor)
    levels = evidence.factors.get(factor, ())
    for level in levels:
        if stated is not None and same_level(level, stated):
            return level
    return levels[0] if levels else None


def baseline_of(evidence: Evidence, factor: str) -> Any:
    """Return the planned baseline, or the first level with a valid run if the baseline has none.

    Without data at the baseline, no answer would have a number. The first level is used instead of
    the best level, because choosing the baseline by its response would invalidate the intervals.
    (`stats.lowest_of` compares with the best.)
    """
    if factor not in evidence.baselines:
        planned = planned_baseline(evidence, factor)
        levels_with_runs = set(levels_of(evidence.usable, factor))
        candidates = (planned, *evidence.factors.get(factor, ()))
        evidence.baselines[factor] = next(
            (
                candidate
                for candidate in candidates
                if any(same_level(candidate, level) for level in levels_with_runs)
            ),
            planned,
        )
    return evidence.baselines[factor]


def baseline_in(evidence: Evidence, factor: str, response: Response) -> Any:
    """Return the baseline level for one response.

    If runs of the common baseline have no comparable value, it is the first level whose runs all
    have a comparable value, provided that there is a second such level to compare with.
    """
    baseline = baseline_of(evidence, factor)
    if not not_compared.without_value(evidence, evidence.usable, response).any():
        return baseline
    comparable = [
        level
        for level in dict.fromkeys((baseline, *levels_run(evidence, factor)))
        if not not_compared.why_not(evidence, evidence.usable, response, {factor: level})
    ]
    return comparable[0] if len(comparable) > 1 else baseline

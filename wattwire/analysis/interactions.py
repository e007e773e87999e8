"""Estimate contrasts at each level of the other factors, to detect ratios that depend on them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire import stats
from wattwire.analysis.answering.answer_types import Answer, Answers, Result
from wattwire.analysis.answering.disagreement import CHANGE_MIN, contrast_at
from wattwire.analysis.answering.single_contrast import without_value
from wattwire.analysis.dataset import Evidence


@dataclass(frozen=True)
class AtLevel:
    """The contrast of `answer` at a fixed `level` of the factor `other`, at strata_confidence."""

    answer: Answer
    other: str
    level: Any
    result: Result


@dataclass(frozen=True)
class Change:
    """A ratio that depends on another factor, with an interval per level of `other`."""

    answer: Answer
    other: str
    levels: tuple[tuple[Any, stats.Interval], ...]


def by_level(
    evidence: Evidence, answers: Answers, only: Sequence[Answer] | None = None
) -> list[AtLevel]:
    """Return the contrasts at each level of every other varied factor.

    The other factors of the question come first. `only` restricts the result to these answers.
    """
    factors_of = {question.id: question.factors for question in evidence.study.questions}
    all_answers = [
        *answers.computed(),
        *answers.differences(),
        *partly_answered(evidence, answers),
    ]
    items = all_answers if only is None else only
    return [
        AtLevel(item, other, level, contrast_at(evidence, item, other, level))
        for item in items
        for other in dict.fromkeys((*factors_of.get(item.question, ()), *evidence.varied))
        if other != item.factor
        for level in evidence.factors.get(other, ())
    ]


def partly_answered(evidence: Evidence, answers: Answers) -> list[Answer]:
    """Return the answers that lack values at some levels but may have values at other levels."""
    refused = [item for item in answers.items if isinstance(item.result, stats.NotComputable)]
    return [item for item in refused if without_value(evidence, evidence.usable, item, None)]


def changes(rows: Sequence[AtLevel]) -> list[Change]:
    """Return the ratios that differ between levels of another factor, largest change first.

    What it detects: two levels whose intervals do not overlap and whose ratios differ by at least
    CHANGE_MIN, or are on different sides of 1. If the ratio is the same at
    all levels, two intervals are disjoint in at most 5 % of campaigns.
    What it misses: changes that are smaller than the intervals. The analysis is exploratory: the
    intervals are not corrected for the number of answers.
    """
    all_changes = list(_changes(rows))
    return sorted(all_changes, key=lambda change: -_extent(change))


def _changes(rows: Sequence[AtLevel]) -> Iterator[Change]:
    for (answer, other), group in itertools.groupby(rows, lambda row: (row.answer, row.other)):
        levels = tuple(
            (row.level, row.result.interval) for row in group if isinstance(row.result, stats.Ratio)
        )
        change = Change(answer, other, levels)
        are_disjoint = any(a.high < b.low for _, a in levels for _, b in levels)
        are_opposite = any(a.high < 1 < b.low for _, a in levels for _, b in levels)
        if are_opposite or (are_disjoint and _extent(change) >= math.log(CHANGE_MIN)):
            yield change


def _extent(change: Change) -> float:
    logs = [math.log(interval.estimate) for _, interval in change.levels]
    return max(logs) - min(logs)

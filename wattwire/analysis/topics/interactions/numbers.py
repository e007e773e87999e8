"""Estimate contrasts at each level of the other factors, to detect ratios that depend on them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire import stats
from wattwire.analysis.answering.answer_types import NUMBER, Answer, Answers, Result
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.answering.disagreement import CHANGE_MIN, contrast_at
from wattwire.analysis.answering.single_contrast import without_value
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.json_values import interval_values
from wattwire.analysis.responses import Response
from wattwire.model import words

NAMED_MAX = 6
"""Maximum number of changes with a sentence. The tables have all of them."""
Estimate = stats.Interval | Result


@dataclass(frozen=True)
class AtLevel:
    """The contrast of `answer` at a fixed `level` of the factor `other`, at strata_confidence."""

    answer: Answer
    other: str
    level: Any
    result: Result
    level_title: str = ""

    @property
    def response(self) -> Response:
        """The response of the answer."""
        return self.answer.response

    @property
    def ratio(self) -> Estimate:
        """The interval of the ratio, or the result that is none."""
        return self.result.interval if isinstance(self.result, stats.Ratio) else self.result

    @property
    def difference(self) -> Estimate:
        """The interval of the difference, or the result that is none."""
        return self.result.interval if isinstance(self.result, stats.Difference) else self.result

    @property
    def strata(self) -> int | None:
        """The number of combinations of the other factors over which the ratio is a mean."""
        return self.result.strata if isinstance(self.result, stats.Ratio) else None


@dataclass(frozen=True)
class RatioAtLevel:
    """The interval of a ratio at a level of another factor."""

    level: Any
    title: str
    interval: stats.Interval


@dataclass(frozen=True)
class Change:
    """A ratio that depends on another factor, with an interval per level of `other`."""

    answer: Answer
    other: str
    levels: tuple[RatioAtLevel, ...]

    @property
    def other_title(self) -> str:
        """The title of the other factor."""
        return words.factor_title(self.other)

    @property
    def lowest(self) -> RatioAtLevel:
        """The lowest ratio."""
        return min(self.levels, key=_estimate)

    @property
    def highest(self) -> RatioAtLevel:
        """The highest ratio."""
        return max(self.levels, key=_estimate)

    @property
    def between(self) -> int:
        """The number of levels between the lowest and the highest ratio."""
        return len(self.levels) - 2


@dataclass(frozen=True)
class Interactions:
    """The contrasts at each level of the other factors, and the changes, largest first.

    `confidence` is the least level of the intervals.
    """

    at_levels: tuple[AtLevel, ...] = ()
    changes: tuple[Change, ...] = ()
    confidence: float = CONFIDENCE

    @property
    def named(self) -> tuple[Change, ...]:
        """The changes that have a sentence."""
        return self.changes[:NAMED_MAX]

    @property
    def ratios(self) -> tuple[AtLevel, ...]:
        """The contrasts of answers that are no differences; empty without any ratio."""
        rows = [row for row in self.at_levels if not _is_difference(row.answer.result)]
        has_ratio = any(isinstance(row.result, stats.Ratio) for row in rows)
        return tuple(rows) if has_ratio else ()

    @property
    def differences(self) -> tuple[AtLevel, ...]:
        """The contrasts of answers that are differences; empty without any number."""
        rows = [row for row in self.at_levels if _is_difference(row.answer.result)]
        return tuple(rows) if any(_is_difference(row.result) for row in rows) else ()

    @property
    def reason(self) -> str:
        """The reason why no contrast has a number; "" if one has."""
        if any(isinstance(row.result, NUMBER) for row in self.at_levels):
            return ""
        return str(self.at_levels[0].result) if self.at_levels else ""


def _estimate(ratio: RatioAtLevel) -> float:
    return ratio.interval.estimate


def _is_difference(result: Result) -> bool:
    return isinstance(result, stats.Difference)


def interactions(evidence: Evidence, answers: Answers) -> Interactions:
    """Return the contrasts at each level of the other factors, and those that depend on them."""
    rows = by_level(evidence, answers)
    return Interactions(tuple(rows), tuple(changes(rows)))


def stored(result: Interactions) -> dict[str, Any]:
    """Return the changes as JSON values, each with an interval per level."""
    return {"changes": [_entry(change) for change in result.changes]}


def _entry(change: Change) -> dict[str, Any]:
    answer = change.answer
    return {
        "question": answer.question,
        "response": answer.response.column,
        "factor": answer.factor,
        "level": answer.level,
        "baseline": answer.baseline,
        "other": change.other,
        "response_title": answer.response.title,
        "level_title": answer.level_title,
        "baseline_title": answer.baseline_title,
        "other_title": change.other_title,
        "levels": [
            {
                "level": ratio.level,
                "level_title": ratio.title,
                **interval_values(ratio.interval),
            }
            for ratio in change.levels
        ],
    }


def by_level(evidence: Evidence, answers: Answers) -> list[AtLevel]:
    """Return the contrasts at each level of every other varied factor.

    The other factors of the question come first.
    """
    factors_of = {question.id: question.factors for question in evidence.study.questions}
    items = [
        *answers.computed(),
        *answers.differences(),
        *partly_answered(evidence, answers),
    ]
    return [
        AtLevel(
            item,
            other,
            level,
            contrast_at(evidence, item, other, level),
            evidence.title(other, level),
        )
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
            RatioAtLevel(row.level, row.level_title, row.result.interval)
            for row in group
            if isinstance(row.result, stats.Ratio)
        )
        change = Change(answer, other, levels)
        pairs = [(a.interval, b.interval) for a in levels for b in levels]
        are_disjoint = any(a.high < b.low for a, b in pairs)
        are_opposite = any(a.high < 1 < b.low for a, b in pairs)
        if are_opposite or (are_disjoint and _extent(change) >= math.log(CHANGE_MIN)):
            yield change


def _extent(change: Change) -> float:
    logs = [math.log(ratio.interval.estimate) for ratio in change.levels]
    return max(logs) - min(logs)

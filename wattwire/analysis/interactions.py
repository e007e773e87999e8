"""Contrasts at each level of the other factors: does one number stand for all of them?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire import stats
from wattwire.analysis.contrasts import CONFIDENCE, Answer, Answers, Result, contrast, without_value
from wattwire.analysis.dataset import Evidence

CHANGE_MIN = 1.25
"""A ratio whose largest and smallest level differ by less than this factor is not named."""


@dataclass(frozen=True)
class AtLevel:
    """The contrast of `answer` with the factor `other` held at `level`, alone at CONFIDENCE."""

    answer: Answer
    other: str
    level: Any
    result: Result


@dataclass(frozen=True)
class Change:
    """A ratio that depends on another factor: its answer, and it at each level of `other`."""

    answer: Answer
    other: str
    levels: tuple[tuple[Any, stats.Interval], ...]


def by_level(
    evidence: Evidence, answers: Answers, only: Sequence[Answer] | None = None
) -> list[AtLevel]:
    """Return the contrasts of every question over several factors at each level of the others.

    With `only` those of these answers.
    """
    asked: dict[str, Sequence[str]] = {
        str(q.get("id", "")): q.get("factors", []) for q in evidence.study.get("question", [])
    }
    every = [*answers.computed(), *answers.differences(), *_partly(evidence, answers)]
    items = every if only is None else only
    return [
        AtLevel(item, other, level, _at(evidence, item, other, level))
        for item in items
        for other in asked.get(item.question, ())
        if other != item.factor
        for level in evidence.factors.get(other, ())
    ]


def _at(evidence: Evidence, item: Answer, other: str, level: Any) -> Result:
    return contrast(evidence, evidence.usable, item, CONFIDENCE, (other, level))


def _partly(evidence: Evidence, answers: Answers) -> list[Answer]:
    """Answers refused for runs without a value: at some levels of other factors there is one."""
    refused = [item for item in answers.items if isinstance(item.result, stats.NotComputable)]
    return [item for item in refused if without_value(evidence, evidence.usable, item, None)]


def changes(rows: Sequence[AtLevel]) -> list[Change]:
    """Return the ratios for which one number does not stand for all levels of another factor.

    What: two levels whose 95 % intervals do not overlap, and whose ratios differ by CHANGE_MIN or
    more; largest change first. What it misses: changes smaller than the intervals, and factors
    that the question does not name. Exploratory: the intervals are not corrected for their number.
    """
    found = list(_changes(rows))
    return sorted(found, key=lambda change: -_extent(change))


def _changes(rows: Sequence[AtLevel]) -> Iterator[Change]:
    for (answer, other), group in itertools.groupby(rows, lambda row: (row.answer, row.other)):
        levels = tuple(
            (row.level, row.result.interval) for row in group if isinstance(row.result, stats.Ratio)
        )
        change = Change(answer, other, levels)
        apart = any(a.high < b.low for _, a in levels for _, b in levels)
        if apart and _extent(change) >= math.log(CHANGE_MIN):
            yield change


def _extent(change: Change) -> float:
    logs = [math.log(interval.estimate) for _, interval in change.levels]
    return max(logs) - min(logs)

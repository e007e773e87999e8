"""Compute the rows of the tables of answers, and the points of the chart of ratios."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire import stats
from wattwire.analysis.answering.answer_types import NUMBER, Answer, Answers, Result
from wattwire.analysis.answering.block_models import usable_fit
from wattwire.analysis.answering.confidence import has_few_degrees
from wattwire.analysis.charts import Point, rounded
from wattwire.analysis.dataset import Evidence, levels_of, same_level
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.answers.statements import above_one
from wattwire.model import words
from wattwire.model.derived import column

Cell = stats.Interval | stats.TooFew | stats.NotComputable | None
FEW = "few degrees"
"""Outcome of a summarised answer whose error has few degrees of freedom."""
RANK_BLOCKS_MIN = 6
"""Minimum number of blocks for ratios by ranks."""


@dataclass(frozen=True)
class Short:
    """An answer in the summary, with the larger side of a ratio first.

    `interval` is in the response's unit. It is None for a share without a number, which has a
    `reason` and no sides. `outcome` is that of the answer, or FEW.
    """

    response: Response
    level_title: str = ""
    baseline_title: str = ""
    interval: stats.Interval | None = None
    is_ratio: bool = False
    outcome: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Row:
    """An answer in the table of all answers.

    `ratio` and `with_all`, which includes excluded runs, are None for a difference. `level` and
    `rank_level` are the exact confidence levels of both intervals.
    """

    answer: Answer
    factor_title: str
    ratio: Cell
    with_all: Cell
    outcome: str | None = None
    level: float | None = None
    model: str | None = None
    degrees: int | None = None
    runs: int | None = None
    blocks: int | None = None
    by_ranks: Cell = None
    rank_level: float | None = None


@dataclass(frozen=True)
class DifferenceRow:
    """An answer in the table of differences.

    `baseline_mean` is the mean of the baseline, `of_means` the difference of means, both in the
    response's unit. `degrees` are those of the difference of means.
    """

    answer: Answer
    factor_title: str
    interval: stats.Interval
    outcome: str
    kind: str
    baseline_mean: float
    of_means: Cell
    degrees: int | None
    runs: int
    blocks: int

    @property
    def level(self) -> float:
        """The exact confidence level of the interval."""
        return self.interval.level


def shorts(answers: Answers) -> list[Short]:
    """Return the summary: decided answers first, then by distance of the ratio from 1.

    Answers without a finite number are omitted, except shares ("none in any of 18 runs"), which
    come last. The page lists the others separately. An answer to two questions has one row.
    """
    numbers = [
        answer
        for answer in answers.items
        if isinstance(answer.result, NUMBER) and math.isfinite(answer.interval.estimate)
    ]
    numbers.sort(key=lambda answer: _place(answers, answer))
    shares = (
        Short(answer.response, reason=str(answer.result))
        for answer in answers.items
        if answer.response.share and not isinstance(answer.result, NUMBER)
    )
    rows = [_short(answers, answer) for answer in numbers]
    return list(dict.fromkeys([*rows, *shares]))


def _place(answers: Answers, answer: Answer) -> tuple[int, float]:
    """Return a sort key that places decided answers first, and ratios before differences."""
    order = list(words.OUTCOMES).index(answers.outcome(answer))
    if has_few_degrees(answer.interval.degrees):
        order = len(words.OUTCOMES)
    if isinstance(answer.result, stats.Ratio):
        return order, -abs(math.log(answer.interval.estimate))
    return order, 0.0


def _short(answers: Answers, answer: Answer) -> Short:
    # The headline does not claim an answer with few degrees of freedom either.
    is_few = has_few_degrees(answer.interval.degrees)
    outcome = FEW if is_few else answers.outcome(answer)
    sides = (answer.level_title, answer.baseline_title)
    if not isinstance(answer.result, stats.Ratio):
        return Short(answer.response, *sides, answer.interval, False, outcome)
    interval = above_one(answer.interval)
    if interval is not answer.interval:
        sides = sides[::-1]
    return Short(answer.response, *sides, interval, True, outcome)


def ratio_points(answers: Answers) -> list[Point]:
    """Return a point per distinct ratio, by response. Fields: those of the chart of ratios."""
    distinct: dict[tuple[str, str, str], Answer] = {}
    for item in answers.computed():
        distinct.setdefault(item.key, item)
    points: list[Point] = []
    for answer in sorted(distinct.values(), key=lambda answer: answer.response.title):
        interval = answer.interval
        is_first = all(point["response"] != answer.response.title for point in points)
        point: Point = {
            "name": f"{answer.level_title} / {answer.baseline_title}",
            "response": answer.response.title,
            "one": 1 if is_first else None,
            "ratio": rounded(interval.estimate),
            "low": rounded(interval.low),
            "high": rounded(interval.high),
        }
        if answers.margin is not None and is_first:
            point |= {"margin_low": 1 / (1 + answers.margin), "margin_high": 1 + answers.margin}
        points.append(point)
    return points


def answer_row(answers: Answers, answer: Answer) -> Row:
    result, by_ranks = answer.result, None
    if answers.block_count >= RANK_BLOCKS_MIN and not isinstance(result, stats.Difference):
        by_ranks = answer.by_ranks
    rank_level = by_ranks.level if isinstance(by_ranks, stats.Interval) else None
    common = (answer, words.factor_title(answer.factor), _ratio(result), _ratio(answer.with_all))
    if not isinstance(result, stats.Ratio):
        return Row(*common, by_ranks=by_ranks, rank_level=rank_level)
    return Row(
        *common,
        answers.outcome(answer),
        result.interval.level,
        result.kind,
        round(result.interval.degrees or 0),
        result.run_count,
        result.block_count,
        by_ranks,
        rank_level,
    )


def _ratio(result: Result) -> Cell:
    """Return the interval of a ratio, the reason why there is no number, or None."""
    if isinstance(result, stats.Difference):
        return None
    return result.interval if isinstance(result, stats.Ratio) else result


def difference_rows(evidence: Evidence, answers: Answers) -> Iterator[DifferenceRow]:
    for answer in answers.items:
        result = answer.result
        if not isinstance(result, stats.Difference):
            continue
        fit = usable_fit(evidence, answer.response, "plain")
        means: Any = fit
        if isinstance(fit, stats.Fit):
            sides = (answer.factor, answer.level, answer.baseline)
            means = stats.difference(fit, *sides, answers.level)
        levels = levels_of(evidence.usable, answer.factor)
        values = column(evidence.usable, answer.response.column)
        at_baseline = values[[same_level(level, answer.baseline) for level in levels]]
        has_means = isinstance(means, stats.Difference)
        yield DifferenceRow(
            answer,
            words.factor_title(answer.factor),
            result.interval,
            answers.outcome(answer),
            result.kind,
            float(np.nanmean(at_baseline)),
            means.interval if has_means else means,
            round(means.interval.degrees or 0) if has_means else None,
            result.run_count,
            result.block_count,
        )

"""Answer the study's questions: what the section on answers states and its tables contain."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scipy import special

from wattwire import stats
from wattwire.analysis.answering.answer_types import NUMBER, Answer, Answers
from wattwire.analysis.answering.baselines import baseline_of, planned_baseline
from wattwire.analysis.answering.confidence import CONFIDENCE, has_few_degrees
from wattwire.analysis.charts import Chart
from wattwire.analysis.dataset import Evidence, judges_variants, same_level
from wattwire.analysis.json_values import interval_values
from wattwire.analysis.topics.answers.gaps import Gaps, gaps_of
from wattwire.analysis.topics.answers.headline_clause import Headline, headline
from wattwire.analysis.topics.answers.nothing import NothingToCompare, nothing_to_compare
from wattwire.analysis.topics.answers.questions import AnsweredQuestion, answered_question
from wattwire.analysis.topics.answers.tables import (
    RANK_BLOCKS_MIN,
    DifferenceRow,
    Row,
    Short,
    answer_row,
    difference_rows,
    ratio_points,
    shorts,
)
from wattwire.analysis.topics.interactions.numbers import Interactions
from wattwire.analysis.topics.ranking.numbers import RankedAlternatives
from wattwire.model import words
from wattwire.model.questions import factors_without_question

ENOUGH_DEGREES = 4
"""A warning of few degrees of freedom compares the interval with the one for this number."""


@dataclass(frozen=True)
class FewDegrees:
    """The least degrees of freedom of an error, and how far its interval extends.

    The limits are in standard errors to each side: `few_limit` for these degrees, `enough_limit`
    for `enough` of them.
    """

    blocks: int
    degrees: int
    few_limit: float
    enough_limit: float
    is_imported: bool
    enough: int = ENOUGH_DEGREES


@dataclass(frozen=True)
class Substitute:
    """A baseline that replaces the planned one: in one response, or for all if it is ""."""

    planned: str
    used: str
    response_title: str = ""


@dataclass(frozen=True)
class Averaged:
    """A varied factor that no question names, so that answers are means over its levels."""

    factor_title: str
    level_titles: tuple[str, ...]


@dataclass(frozen=True)
class AnsweredStudy:
    """What the section on answers contains.

    `has_excluded` is true if runs were excluded; `elsewhere` is the number of those that did not
    measure the study's conditions. `edited` and `limits_changed` are changes after the measurement.
    The page of a command has no section on answers.
    """

    contrasts: Answers
    shorts: tuple[Short, ...] = ()
    nothing: NothingToCompare = NothingToCompare()
    few_degrees: FewDegrees | None = None
    substitutes: tuple[Substitute, ...] = ()
    averaged: tuple[Averaged, ...] = ()
    gaps: Gaps = Gaps()
    questions: tuple[AnsweredQuestion, ...] = ()
    ratios: Chart = Chart()
    rows: tuple[Row, ...] = ()
    differences: tuple[DifferenceRow, ...] = ()
    family_title: str = ""
    varied: int = 0
    judges_variants: bool = False
    has_excluded: bool = False
    elsewhere: int = 0
    edited: tuple[str, ...] = ()
    limits_changed: bool = False
    is_imported: bool = False
    headline: Headline = Headline()
    is_command: bool = False
    confidence: float = CONFIDENCE

    @property
    def has_ranks(self) -> bool:
        """Whether the table has ratios by ranks."""
        return self.contrasts.block_count >= RANK_BLOCKS_MIN

    @property
    def is_exploratory(self) -> bool:
        """Whether changes after the measurement make the answers exploratory."""
        return bool(self.edited) or self.limits_changed


def answered(
    evidence: Evidence,
    answers: Answers,
    interactions: Interactions,
    ranking: RankedAlternatives,
) -> AnsweredStudy:
    """Return the answers to the study's questions."""
    return AnsweredStudy(
        answers,
        tuple(shorts(answers)),
        nothing_to_compare(evidence),
        few_degrees(evidence, answers),
        tuple(dict.fromkeys(_substitutes(evidence, answers))),
        tuple(_averaged(evidence)),
        gaps_of(evidence, answers) if evidence.usable.height else Gaps(),
        tuple(
            answered_question(evidence, answers, question, number)
            for number, question in enumerate(evidence.study.questions, 1)
        ),
        Chart(ratio_points(answers)),
        tuple(answer_row(answers, answer) for answer in answers.items),
        tuple(difference_rows(evidence, answers)),
        evidence.study.answers.family,
        len(evidence.varied),
        judges_variants(evidence),
        evidence.excluded.height > 0,
        int(evidence.went_another_way.sum()),
        evidence.edited,
        bool(evidence.validity_changed),
        evidence.imported,
        headline(evidence, answers, interactions, ranking),
        evidence.study.request is not None,
    )


def stored(result: AnsweredStudy) -> dict[str, Any]:
    """Return the contrasts as JSON values, with their family, margin and blocks."""
    answers = result.contrasts
    return {
        "blocks": answers.block_count,
        "family": answers.family,
        "margin": answers.margin,
        "contrasts": [_entry(answers, answer) for answer in answers.items],
    }


def _entry(answers: Answers, answer: Answer) -> dict[str, Any]:
    """Return the entry of one contrast.

    `kind` is ratio, difference, or none with a `reason`.
    """
    named = {
        "question": answer.question,
        "response": answer.response.column,
        "unit": answer.response.unit,
        "is_share": answer.response.share,
        "factor": answer.factor,
        "level": answer.level,
        "baseline": answer.baseline,
        "response_title": answer.response.title,
        "level_title": answer.level_title,
        "baseline_title": answer.baseline_title,
    }
    if not isinstance(answer.result, NUMBER):
        return {**named, "kind": "none", "reason": str(answer.result)}
    is_ratio = isinstance(answer.result, stats.Ratio)
    noise = answers.noise if is_ratio else answers.plain_noise
    floor = noise.get(answer.response.column)
    return {
        **named,
        "kind": "ratio" if is_ratio else "difference",
        **interval_values(answer.interval),
        "outcome": answers.outcome(answer),
        # On the scale of the contrast: a factor above 1, or a difference in the response's unit.
        "noise_floor": math.exp(floor) if is_ratio and floor is not None else floor,
    }


def few_degrees(evidence: Evidence, answers: Answers) -> FewDegrees | None:
    """Return the least degrees of freedom of an error if they are few, else None."""
    intervals = [item.interval for item in (*answers.computed(), *answers.differences())]
    few = [interval for interval in intervals if has_few_degrees(interval.degrees)]
    if not few:
        return None
    least = min(few, key=lambda interval: interval.degrees or 0)
    few_limit, enough_limit = special.stdtrit(
        [least.degrees, ENOUGH_DEGREES], 0.5 + least.level / 2
    )
    return FewDegrees(
        answers.block_count,
        max(1, int(least.degrees or 0)),
        float(few_limit),
        float(enough_limit),
        evidence.imported,
    )


def _substitutes(evidence: Evidence, answers: Answers) -> Iterator[Substitute]:
    """Yield the baselines that replace others, for all responses and then for single ones."""
    for factor in dict.fromkeys(item.factor for item in answers.items):
        planned, used = planned_baseline(evidence, factor), baseline_of(evidence, factor)
        if not same_level(planned, used):
            yield Substitute(evidence.title(factor, planned), evidence.title(factor, used))
    for answer in answers.items:
        common = baseline_of(evidence, answer.factor)
        if not same_level(common, answer.baseline):
            yield Substitute(
                evidence.title(answer.factor, common),
                evidence.title(answer.factor, answer.baseline),
                answer.response.title,
            )


def _averaged(evidence: Evidence) -> Iterator[Averaged]:
    study = evidence.study
    for name in factors_without_question(evidence.varied, study.questions, study.answers.best_of):
        titles = tuple(evidence.title(name, level) for level in evidence.factors[name])
        yield Averaged(words.factor_title(name), titles)

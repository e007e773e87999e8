"""Compute what the section states below each question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from wattwire import stats
from wattwire.analysis.answering.answer_types import NUMBER, Answer, Answers
from wattwire.analysis.dataset import Evidence, judges_variants
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.answers.statements import (
    Statement,
    statement,
    statement_with_all,
)
from wattwire.model import words
from wattwire.model.derived import column
from wattwire.model.questions import Question
from wattwire.model.variants import FACTOR

SENTENCES_MAX, LOWEST_LISTED, HIGHEST_LISTED = 8, 3, 2
"""With more than SENTENCES_MAX answers for a factor, only the lowest and the highest answers have
sentences. LOWEST_LISTED and HIGHEST_LISTED are their numbers.
"""
OPEN_SENTENCES_MAX = 4
"""With more sentences, a question has them folded, because they repeat the summary of answers."""


@dataclass(frozen=True)
class WhyDifferences:
    """Why the answers in a response are differences.

    `counted` of `runs` runs are above zero for a share, and zero or negative for other responses.
    The `minimum` is that of `run`.
    """

    response: Response
    counted: int
    runs: int
    minimum: float
    run: str


@dataclass(frozen=True)
class OutcomeCount:
    """The number of levels with an outcome."""

    outcome: str
    levels: int


@dataclass(frozen=True)
class OtherLevels:
    """The answers of a factor in a response between those that have sentences.

    `lowest` and `highest` are ratios, or differences in the response's unit.
    """

    response: Response
    factor_title: str
    baseline_title: str
    is_baseline_named: bool
    is_ratio: bool
    lowest: float
    highest: float
    outcomes: tuple[OutcomeCount, ...]

    @property
    def levels(self) -> int:
        """The number of levels."""
        return sum(count.levels for count in self.outcomes)


@dataclass(frozen=True)
class Stated:
    """A sentence on one answer with its outcome, or on the `others` of its factor."""

    statement: Statement | None = None
    outcome: str = ""
    others: OtherLevels | None = None


@dataclass(frozen=True)
class WithoutNumber:
    """A response without a number, with the reason."""

    response_title: str
    reason: str


@dataclass(frozen=True)
class AnsweredQuestion:
    """The answers to the study's question `number` (from 1 on).

    `is_judged` is true if the comparison of variants answers it. `is_requested` is false if it only
    requests correlations. `with_all` are answers that include excluded runs.
    """

    number: int
    id: str
    text: str
    is_judged: bool
    is_requested: bool
    has_answers: bool
    differences: tuple[WhyDifferences, ...] = ()
    stated: tuple[Stated, ...] = ()
    without_number: tuple[WithoutNumber, ...] = ()
    with_all: tuple[Statement, ...] = ()

    @property
    def is_folded(self) -> bool:
        """Whether the sentences on single answers are folded."""
        return len(self.stated) > OPEN_SENTENCES_MAX

    @property
    def named(self) -> tuple[WithoutNumber, ...]:
        """The responses without a number that have a sentence."""
        return self.without_number[:SENTENCES_MAX]

    @property
    def more(self) -> int:
        """The number of other responses without a number."""
        return len(self.without_number) - len(self.named)


def answered_question(
    evidence: Evidence, answers: Answers, question: Question, number: int
) -> AnsweredQuestion:
    own = [answer for answer in answers.items if answer.question == question.id]
    uncomputed = [answer for answer in own if not isinstance(answer.result, NUMBER)]
    differences = dict.fromkeys(
        answer.response for answer in own if isinstance(answer.result, stats.Difference)
    )
    # Answers whose numbers are missing for the same reason share a sentence.
    without_number = dict.fromkeys(
        WithoutNumber(answer.response.title, str(answer.result)) for answer in uncomputed
    )
    with_all: list[Statement] = []
    if evidence.excluded.height:
        statements = (
            statement_with_all(evidence, answer, answers.family_of_all) for answer in uncomputed
        )
        with_all = [item for item in statements if item is not None]
    return AnsweredQuestion(
        number,
        question.id,
        question.text,
        judges_variants(evidence) and FACTOR in question.factors,
        bool(own) or not question.beside,
        bool(own),
        tuple(_why_differences(evidence, response) for response in differences),
        tuple(_stated(evidence, answers, own)),
        tuple(without_number),
        tuple(with_all),
    )


def _why_differences(evidence: Evidence, response: Response) -> WhyDifferences:
    values = column(evidence.usable, response.column)
    known = int(np.isfinite(values).sum())
    counted = int(np.sum(values > 0 if response.share else values <= 0))
    least = int(np.nanargmin(values))
    run = str(evidence.usable["run"][least])
    return WhyDifferences(response, counted, known, float(values[least]), run)


def _stated(evidence: Evidence, answers: Answers, own: Sequence[Answer]) -> Iterator[Stated]:
    """Yield what is stated of the answers with a number, by response and factor.

    With more than SENTENCES_MAX levels, these are the lowest and the highest levels, and a summary
    of the others.
    """
    groups: dict[tuple[Response, str], list[Answer]] = {}
    for answer in own:
        if isinstance(answer.result, NUMBER):
            groups.setdefault((answer.response, answer.factor), []).append(answer)
    for group in groups.values():
        shown, rest = group, []
        if len(group) > SENTENCES_MAX:
            ranked = sorted(group, key=lambda answer: answer.interval.estimate)
            shown = [*ranked[:LOWEST_LISTED], *ranked[-HIGHEST_LISTED:]]
            rest = ranked[LOWEST_LISTED:-HIGHEST_LISTED]
        for answer in shown:
            stated = statement(evidence, answer, answers.family)
            yield Stated(stated, answers.outcome(answer))
        if rest:
            yield Stated(others=_other_levels(evidence, answers, rest))


def _other_levels(evidence: Evidence, answers: Answers, rest: Sequence[Answer]) -> OtherLevels:
    """Return a summary of answers that are sorted by their estimates."""
    first = rest[0]
    outcomes = Counter(answers.outcome(answer) for answer in rest)
    return OtherLevels(
        first.response,
        words.factor_title(first.factor),
        first.baseline_title,
        first.factor in evidence.study.answers.baseline,
        isinstance(first.result, stats.Ratio),
        first.interval.estimate,
        rest[-1].interval.estimate,
        tuple(OutcomeCount(outcome, count) for outcome, count in outcomes.most_common()),
    )

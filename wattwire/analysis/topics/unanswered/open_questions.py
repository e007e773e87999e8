"""Find the questions and the requested answers without a number, and the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wattwire.analysis.answering.answer_types import NUMBER, Answers
from wattwire.analysis.dataset import Evidence, judges_variants
from wattwire.analysis.metrics_by_role import BOTH, is_measured
from wattwire.analysis.responses import measured, resolve
from wattwire.model import words
from wattwire.model.variants import FACTOR

REASONS_NAMED = 3
"""Maximum number of reasons that a sentence on responses without a number states."""


@dataclass(frozen=True)
class Held:
    """A factor of a question with a single level, with the reason why it has no answer.

    `is_only` is true if the question has no other factors.
    """

    question: str
    factor: str
    reason: str
    is_only: bool


@dataclass(frozen=True)
class Gap:
    """Responses of questions without a number, for the same `reasons`.

    Without reasons, the responses were not measured.
    """

    is_measured: bool
    questions: tuple[str, ...]
    responses: tuple[str, ...]
    reasons: tuple[str, ...]

    @property
    def named(self) -> tuple[str, ...]:
        """The reasons that the sentence states."""
        return self.reasons[:REASONS_NAMED]

    @property
    def more(self) -> int:
        """The number of other reasons."""
        return len(self.reasons) - len(self.named)


@dataclass(frozen=True)
class Requested:
    """A requested answer that lacks both a number and a reason."""

    question: str
    response_title: str
    factor_title: str


def held_factors(evidence: Evidence) -> Iterator[Held]:
    """Yield each factor of a question that has a single level; none without a valid run."""
    if not evidence.usable.height:
        return
    for number, question in enumerate(evidence.study.questions, 1):
        held = evidence.held(question)
        for factor, level in held:
            why = words.nothing_to_compare(factor, words.plain(level))
            is_only = len(held) == len(question.factors)
            yield Held(str(question.id or number), factor, why, is_only)


def gaps_in_questions(evidence: Evidence, answers: Answers) -> list[Gap]:
    """Return the responses of questions without a number, by reason; none without a valid run."""
    gaps: list[Gap] = []
    for number, question in enumerate(evidence.study.questions, 1):
        for name in question.responses if evidence.usable.height else ():
            response = resolve(name, evidence.described)
            items = [
                item
                for item in answers.items
                if item.question == question.id and item.response == response
            ]
            reasons = dict.fromkeys(str(item.result) for item in items)
            has_counts = response.share and measured(evidence.usable, response)
            if has_counts or any(isinstance(item.result, NUMBER) for item in items):
                continue
            if not items and (question.factors or is_measured(evidence, response, BOTH)):
                continue
            id_text, is_known = str(question.id or number), measured(evidence.usable, response)
            gaps.append(Gap(is_known, (id_text,), (response.title,), tuple(reasons)))
    return _merged(gaps)


def _merged(gaps: Sequence[Gap]) -> list[Gap]:
    """Return the gaps with the responses of a question, then the questions, that have the same
    reasons, merged.
    """
    by_question: dict[Any, Gap] = {}
    for gap in gaps:
        key = gap.is_measured, gap.questions, gap.reasons
        first = by_question.get(key)
        responses = (*first.responses, *gap.responses) if first else gap.responses
        by_question[key] = replace(gap, responses=responses)
    merged: dict[Any, Gap] = {}
    for gap in by_question.values():
        key = gap.is_measured, gap.responses, gap.reasons
        first = merged.get(key)
        questions = (*first.questions, *gap.questions) if first else gap.questions
        merged[key] = replace(gap, questions=questions)
    return list(merged.values())


def lost_answers(evidence: Evidence, answers: Answers) -> Iterator[Requested]:
    """Yield the requested answers that lack both a number and a reason.

    The cause is an error of the program or an edited campaign.
    """
    answered = {(item.question, item.factor, item.response.column) for item in answers.items}
    for number, question in enumerate(evidence.study.questions, 1):
        held = dict(evidence.held(question))
        if judges_variants(evidence):  # their verdict has the reason
            held[FACTOR] = None
        for factor in question.factors:
            if factor in held or evidence.factors.get(factor) == ():
                continue
            for name in question.responses:
                response = resolve(name, evidence.described)
                if (question.id, factor, response.column) not in answered:
                    title = words.factor_title(factor)
                    yield Requested(str(question.id or number), response.title, title)

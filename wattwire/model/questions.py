"""Parse `[[question]]` tables, which have factors, responses and correlates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire.model.fields import given, read_table
from wattwire.model.variants import FACTOR as VARIANT


@dataclass(frozen=True)
class Question:
    """A question of the study. Contrasts of its responses over its factors answer it.

    `factors` may include factors that the study fixes, for which there is no answer. `beside`
    contains the metrics that are correlated with each response.
    """

    id: str = ""
    text: str = ""
    factors: tuple[str, ...] = given("a list of names", ())
    responses: tuple[str, ...] = given("a list of names", ())
    beside: tuple[str, ...] = given("a list of names", ())


def factors_without_question(
    varied: Iterable[str], questions: Sequence[Question], best_of: Iterable[str]
) -> list[str]:
    """Return the varied factors that no question names; the answers are averages over their levels.

    The list is empty if a question names the variants, because a comparison of variants judges
    every treatment.
    """
    named = {*best_of, *(name for question in questions for name in question.factors)}
    return [] if VARIANT in named else [name for name in varied if name not in named]


def parse_questions(items: Sequence[Mapping[str, Any]], where: str) -> tuple[Question, ...]:
    """Parse every `[[question]]`. Raises UsageError for an unknown key or an invalid list."""
    return tuple(_question(item, where) for item in items)


def _question(item: Mapping[str, Any], where: str) -> Question:
    texts = {key: str(item[key]) for key in ("id", "text") if key in item}
    return read_table(Question, {**item, **texts}, f"{where}: question")

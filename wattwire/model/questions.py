"""Parse `[[question]]` tables, which have factors, responses and correlates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire.model.fields import given, read_table


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


def parse_questions(items: Sequence[Mapping[str, Any]], where: str) -> tuple[Question, ...]:
    """Parse every `[[question]]`. Raises UsageError for an unknown key or an invalid list."""
    return tuple(_question(item, where) for item in items)


def _question(item: Mapping[str, Any], where: str) -> Question:
    texts = {key: str(item[key]) for key in ("id", "text") if key in item}
    return read_table(Question, {**item, **texts}, f"{where}: question")

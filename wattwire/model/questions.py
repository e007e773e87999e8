"""`[[question]]`: the questions of a study, with their factors, responses and correlates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wattwire.model.errors import UsageError, unknown

QUESTION_KEYS = ("id", "text", "factors", "responses", "beside")
LISTS = ("factors", "responses", "beside")


@dataclass(frozen=True)
class Question:
    """One question of the study, answered by contrasts of its responses over its factors.

    `factors` may name factors that the study holds at one level; these get no answer. `beside`
    names the metrics that each response is correlated with.
    """

    id: str = ""
    text: str = ""
    factors: tuple[str, ...] = ()
    responses: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


def parse_questions(items: Sequence[Mapping[str, Any]], where: str) -> tuple[Question, ...]:
    """Return every `[[question]]`. Raises UsageError for an unknown key or a wrong list."""
    return tuple(_question(item, where) for item in items)


def _question(item: Mapping[str, Any], where: str) -> Question:
    for key in item:
        if key not in QUESTION_KEYS:
            raise unknown(f"{where}: question", "key", key, QUESTION_KEYS)
        if key in LISTS and not (
            isinstance(item[key], list) and all(isinstance(name, str) for name in item[key])
        ):
            raise UsageError(
                f"{where}: question: {key}: found {item[key]!r}; allowed: a list of names"
            )
    factors, responses, beside = (tuple(item.get(key, ())) for key in LISTS)
    return Question(str(item.get("id", "")), str(item.get("text", "")), factors, responses, beside)

"""`[[question]]`: what a study wants answered, by which responses, and in which way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wattwire.model.errors import UsageError, unknown

QUESTION_KEYS = ("id", "text", "factors", "responses", "beside")
LISTS = ("factors", "responses", "beside")


@dataclass(frozen=True)
class Question:
    """One question of the study, answered by responses contrasted over factors.

    `beside` names what each response is set beside: does the one go along with the other?
    `held` are factors that the question names and the study does not vary: they get no answer.
    """

    id: str
    text: str
    factors: tuple[str, ...]
    responses: tuple[str, ...]
    beside: tuple[str, ...] = ()
    held: tuple[str, ...] = ()


def parse_questions(
    items: Any, factors: Mapping[str, Any], may_vary: Callable[[str], bool], where: str
) -> tuple[Question, ...]:
    """Check every `[[question]]`. Raises UsageError naming place, found and allowed.

    `may_vary` knows the words for factors; those that the study holds at one level
    are kept apart.
    """
    questions = []
    for number, item in enumerate(items, 1):
        for key in item:
            if key not in QUESTION_KEYS:
                raise unknown(f"{where}: question", "key", key, QUESTION_KEYS)
            if key in LISTS and not (
                isinstance(item[key], list) and all(isinstance(name, str) for name in item[key])
            ):
                raise UsageError(
                    f"{where}: question: {key}: found {item[key]!r}; allowed: a list of names"
                )
        for name in item.get("factors", []):
            if not may_vary(name):
                place = f"{where}: question {item.get('id') or number}: factors"
                raise unknown(place, "factor", name, factors)
        asked = [name for name in item.get("factors", []) if name in factors]
        questions.append(
            Question(
                id=str(item.get("id", "")),
                text=str(item.get("text", "")),
                factors=tuple(asked),
                responses=tuple(item.get("responses", [])),
                beside=tuple(item.get("beside", [])),
                held=tuple(name for name in item.get("factors", []) if name not in factors),
            )
        )
    return tuple(questions)

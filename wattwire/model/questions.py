"""`[[question]]`: the questions of a study, with their factors, responses and correlates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wattwire.model.errors import UsageError, unknown

QUESTION_KEYS = ("id", "text", "factors", "responses", "beside")
LISTS = ("factors", "responses", "beside")


@dataclass(frozen=True)
class Question:
    """One question of the study, answered by contrasts of its responses over its factors.

    `beside` names the metrics that each response is correlated with. `held` are factors that the
    question names and that the study does not vary, so they get no answer.
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
    """Return every checked `[[question]]`.

    `may_vary` says whether a name is that of a possible factor. Factors that the study holds at
    one level become `Question.held`. Raises UsageError that gives the place, the value and the
    allowed values.
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
        varied = [name for name in item.get("factors", []) if name in factors]
        questions.append(
            Question(
                id=str(item.get("id", "")),
                text=str(item.get("text", "")),
                factors=tuple(varied),
                responses=tuple(item.get("responses", [])),
                beside=tuple(item.get("beside", [])),
                held=tuple(name for name in item.get("factors", []) if name not in factors),
            )
        )
    return tuple(questions)

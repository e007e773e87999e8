"""Rank the study's alternatives in each response, and compare them at the levels of factors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.answering.confidence import CONFIDENCE
from wattwire.analysis.dataset import (
    Evidence,
    all_levels,
    by_treatment,
    levels_in,
    levels_of,
    same_level,
)
from wattwire.analysis.json_values import finite
from wattwire.analysis.not_compared import comparable_values
from wattwire.analysis.responses import resolve
from wattwire.analysis.topics.ranking.choice import Choice, Exchange, Saturated
from wattwire.analysis.topics.ranking.headline_clause import Headline, headline
from wattwire.analysis.topics.ranking.order import choices, factors_of
from wattwire.model import words
from wattwire.model.questions import Question

NAMED_MAX = 4
"""Maximum number of levels that a sentence on the best levels names."""
Means = dict[tuple[Any, ...], float]


@dataclass(frozen=True)
class Observed:
    """An alternative with its mean over its runs, in the response's unit."""

    title: str
    value: float


@dataclass(frozen=True)
class LevelWins:
    """The number of levels of another factor at which a level is the best."""

    title: str
    levels: int


@dataclass(frozen=True)
class Wins:
    """The levels of one factor that are the best at `levels` levels of another, most first."""

    factor_title: str
    levels: int
    winners: tuple[LevelWins, ...]


@dataclass(frozen=True)
class OrderByLevel:
    """The pairs of alternatives that change places with another factor, largest change first."""

    factor_title: str
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True)
class RankedResponse:
    """The alternatives in a response of a question, of as many observed `alternatives`."""

    choice: Choice
    alternatives: int
    lowest: Observed
    highest: Observed
    orders: tuple[OrderByLevel, ...]
    wins: tuple[Wins, ...]


@dataclass(frozen=True)
class RankedQuestion:
    """The responses of the study's question `number` (from 1 on) that has all factors."""

    number: int
    responses: tuple[RankedResponse, ...]


@dataclass(frozen=True)
class Row:
    """An alternative in a response. Without a rank, it has only a `reason`."""

    response_title: str
    alternative: str
    group: str = ""
    typical: float | None = None
    unit: str | None = None
    over: float | None = None
    at_most: float | None = None
    saturated: Saturated | None = None
    reason: str = ""


@dataclass(frozen=True)
class RankedAlternatives:
    """The alternatives in each response; empty if the study names no factors of alternatives.

    `unmeasured` are the alternatives of the design without a valid run. `headline` is None if no
    response is ranked. The groups apply simultaneously at `confidence`.
    """

    factor_titles: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = ()
    questions: tuple[RankedQuestion, ...] = ()
    unmeasured: tuple[str, ...] = ()
    headline: Headline | None = None
    confidence: float = CONFIDENCE

    @property
    def ranked(self) -> tuple[str, ...]:
        """The titles of the responses with a ranking."""
        return tuple(choice.response.title for choice in self.choices if choice.placed)

    @property
    def unranked(self) -> tuple[Choice, ...]:
        """The responses without a ranking."""
        return tuple(choice for choice in self.choices if choice.why_not)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The ranked alternatives, then the others; empty if none is ranked."""
        if not self.ranked:
            return ()
        return (*_ranked_rows(self.choices), *_other_rows(self.choices))


def ranking(evidence: Evidence, answers: Answers) -> RankedAlternatives:
    """Return the order of the study's alternatives in each response."""
    factors = factors_of(evidence)
    ordered = choices(evidence, answers)
    if not ordered:
        return RankedAlternatives(tuple(map(words.factor_title, factors)))
    return RankedAlternatives(
        tuple(map(words.factor_title, factors)),
        tuple(ordered),
        tuple(_questions(evidence, factors, ordered)),
        tuple(_unmeasured(evidence, factors)),
        headline(evidence, ordered),
    )


def stored(result: RankedAlternatives) -> dict[str, Any]:
    """Return the alternatives in each response as JSON values, in ascending order.

    `group` is lowest, equal (within the margin), open (may be the lowest) or higher.
    """
    return {"best_alternatives": [_entry(choice) for choice in result.choices]}


def _entry(choice: Choice) -> dict[str, Any]:
    return {
        "response": choice.response.column,
        "unit": choice.response.unit,
        "reason": choice.why_not,
        "alternatives": [
            {
                "title": placed.title,
                "levels": list(placed.levels),
                "geometric_mean": finite(placed.typical),
                "over_lowest": finite(placed.over_lowest),
                "over_lowest_max": finite(placed.at_most),
                "group": placed.group,
            }
            for placed in choice.placed
        ],
        "excluded": dict(choice.without),
        "reversals": [
            {
                "factor": reversal.factor,
                "level": reversal.level,
                "title": reversal.title,
                "ratio": reversal.ratio,
            }
            for reversal in choice.reversals
        ],
        "exchanges": [
            {
                "factor": factor,
                "first": exchange.first,
                "second": exchange.second,
                "level": exchange.level,
                "ratio": exchange.ratio,
                "other_level": exchange.other_level,
                "other_ratio": exchange.other_ratio,
            }
            for factor, exchanges in choice.exchanges.items()
            for exchange in exchanges
        ],
    }


def _ranked_rows(ordered: Sequence[Choice]) -> Iterator[Row]:
    for choice in ordered:
        saturated = {item.title: item for item in choice.saturated}
        for placed in choice.placed:
            yield Row(
                choice.response.title,
                placed.title,
                placed.group,
                placed.typical,
                choice.response.unit,
                placed.over_lowest,
                placed.at_most,
                saturated.get(placed.title),
            )


def _other_rows(ordered: Sequence[Choice]) -> Iterator[Row]:
    for choice in ordered:
        for title, reason in choice.without.items():
            yield Row(choice.response.title, title, reason=reason)


def _questions(
    evidence: Evidence, factors: Sequence[str], ordered: Sequence[Choice]
) -> Iterator[RankedQuestion]:
    """Yield the questions that name all factors of the alternatives."""
    for number, question in enumerate(evidence.study.questions, 1):
        if set(factors) <= set(question.factors):
            responses = {resolve(name, evidence.described) for name in question.responses}
            ranked = (
                _ranked_response(evidence, question, factors, choice)
                for choice in ordered
                if choice.response in responses
            )
            yield RankedQuestion(number, tuple(item for item in ranked if item is not None))


def _ranked_response(
    evidence: Evidence, question: Question, factors: Sequence[str], choice: Choice
) -> RankedResponse | None:
    """Return the order in a response, or None for less than two comparable alternatives."""
    means = _means(evidence, choice, factors)
    if len(means) < 2:
        return None
    by_value = sorted(means, key=means.__getitem__)
    lowest, highest = (
        Observed(" ".join(map(evidence.title, factors, key)), means[key])
        for key in (by_value[0], by_value[-1])
    )
    orders = tuple(
        OrderByLevel(words.factor_title(factor), choice.exchanges[factor])
        for factor in question.factors
        if factor in choice.exchanges
    )
    wins = tuple(_wins(evidence, choice.response.more_is_better, factors, means))
    return RankedResponse(choice, len(means), lowest, highest, orders, wins)


def _means(evidence: Evidence, choice: Choice, factors: Sequence[str]) -> Means:
    """Return each comparable alternative's mean over its comparable runs, by levels of `factors`.

    The mean is geometric, as in the answers, and arithmetic if a run has no logarithm.
    """
    values: dict[tuple[Any, ...], list[float]] = {}
    for frame in by_treatment(evidence, evidence.usable).values():
        key = tuple(levels_of(frame, name)[0] for name in factors)
        if " ".join(map(evidence.title, factors, key)) in choice.without:
            continue
        known = comparable_values(evidence, frame, choice.response)
        values.setdefault(key, []).extend(known[np.isfinite(known)].tolist())
    known_values = {key: np.array(of_runs) for key, of_runs in values.items() if of_runs}
    if all((of_runs > 0).all() for of_runs in known_values.values()):
        return {key: float(np.exp(np.log(x).mean())) for key, x in known_values.items()}
    return {key: float(x.mean()) for key, x in known_values.items()}


def _wins(
    evidence: Evidence, more_is_better: bool, factors: Sequence[str], means: Means
) -> Iterator[Wins]:
    """Yield how often each level of a factor is the best over the other of two factors."""
    if len(factors) != 2:
        return
    for index, factor in enumerate(factors):
        groups: dict[Any, list[tuple[Any, ...]]] = {}
        for key in means:
            groups.setdefault(key[1 - index], []).append(key)
        compared = [keys for keys in groups.values() if len(keys) > 1]
        best = max if more_is_better else min
        counts = Counter(best(keys, key=means.__getitem__)[index] for keys in compared)
        winners = tuple(
            LevelWins(evidence.title(factor, level), count)
            for level, count in counts.most_common(NAMED_MAX)
        )
        if winners:
            yield Wins(words.factor_title(factors[1 - index]), len(compared), winners)


def _unmeasured(evidence: Evidence, factors: Sequence[str]) -> list[str]:
    """Return the alternatives of the design without a valid run."""
    usable = levels_in(evidence.usable, factors)
    missing: dict[str, None] = {}
    for entry in evidence.designed:
        levels = all_levels(entry)
        alternative = [levels.get(name) for name in factors]
        if not any(all(map(same_level, alternative, measured)) for measured in usable):
            missing[" ".join(map(evidence.title, factors, alternative))] = None
    return list(missing)

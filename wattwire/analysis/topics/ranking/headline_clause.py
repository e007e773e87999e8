"""Compute what the headline states of a study that ranks alternatives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wattwire.analysis.answering.confidence import has_few_degrees
from wattwire.analysis.dataset import Evidence, held_levels, levels_in
from wattwire.analysis.responses import Response, resolve
from wattwire.analysis.topics.ranking.choice import EQUAL, LOWEST, Choice
from wattwire.analysis.topics.ranking.order import factors_of
from wattwire.model.derived import column

EQUAL_SHARES = 0.001
"""Smallest difference of two mean shares that decides between alternatives."""
NAMES_MAX = 6
"""Maximum number of alternatives that the headline names in one response."""
NAMES_MAX_EACH = 3
"""Maximum number of alternatives that the headline names in each of several responses."""
CONDITIONS = ("payload_bytes", "literal", "clients", "rate_hz", "interval_s")


@dataclass(frozen=True)
class Condition:
    """A fixed level, by its title. A literal is the text of a message."""

    title: str
    is_literal: bool


@dataclass(frozen=True)
class Shares:
    """The mean of a response that is a share over the runs of each alternative, by title."""

    response: Response
    means: Mapping[str, float]

    @property
    def lowest(self) -> float:
        """The lowest mean."""
        return min(self.means.values())

    @property
    def highest(self) -> float:
        """The highest mean."""
        return max(self.means.values())

    @property
    def is_equal(self) -> bool:
        """Whether all means are equal."""
        return self.highest - self.lowest < EQUAL_SHARES

    @property
    def best(self) -> tuple[str, ...]:
        """The alternatives with the lowest mean."""
        return tuple(title for title in self.means if self.is_best(title))

    @property
    def worst(self) -> str:
        """The alternative with the highest mean."""
        return max(self.means, key=self.means.__getitem__)

    def is_best(self, title: str) -> bool:
        """Return whether an alternative has the lowest mean."""
        return title in self.means and self.means[title] - self.lowest < EQUAL_SHARES


@dataclass(frozen=True)
class Clause:
    """What the headline states of a response: its ranking, if any, or its shares.

    `is_same_leader` is true if the clause before it has the same best alternative.
    """

    choice: Choice | None = None
    shares: Shares | None = None
    is_same_leader: bool = False


@dataclass(frozen=True)
class Headline:
    """The best alternatives in all responses, of as many `alternatives`.

    `has_winner` is true if one alternative is the best in each response, `is_reversed` if another
    one is better at a level of another factor. Each clause names at most `names_max` alternatives.
    `margin` is the study's margin of equivalence (share).
    """

    conditions: tuple[Condition, ...]
    clauses: tuple[Clause, ...]
    alternatives: int
    has_winner: bool
    is_reversed: bool
    names_max: int
    margin: float | None

    @property
    def responses(self) -> int:
        """The number of responses."""
        return len(self.clauses)


def headline(evidence: Evidence, choices: Sequence[Choice]) -> Headline | None:
    """Return what the headline states of all responses, or None if no response is ranked.

    A ranking whose error has few degrees of freedom is in the table only.
    """
    choices = [choice for choice in choices if not has_few_degrees(choice.degrees)]
    ranked = [choice for choice in choices if choice.placed]
    if not ranked:
        return None
    shares = list(mean_shares(evidence))
    clauses = [
        *_ranked_clauses(ranked),
        *(Clause(choice) for choice in choices if not choice.placed),
        *(Clause(shares=item) for item in shares if not item.is_equal),
    ]
    return Headline(
        tuple(_conditions(evidence)),
        tuple(clauses),
        len(ranked[0].placed),
        len(choices) == len(ranked) and wins_all(ranked, shares),
        any(choice.reversals for choice in ranked),
        NAMES_MAX if len(choices) == 1 else NAMES_MAX_EACH,
        evidence.study.answers.margin,
    )


def _ranked_clauses(ranked: Sequence[Choice]) -> Iterator[Clause]:
    previous = ""
    for choice in ranked:
        yield Clause(choice, is_same_leader=choice.leader == previous)
        previous = choice.leader


def _conditions(evidence: Evidence) -> Iterator[Condition]:
    """Yield the main fixed conditions, such as payload, clients and rate."""
    held = held_levels(evidence)
    for name in CONDITIONS:
        is_hidden = name == "payload_bytes" and held.get("literal")
        if name in evidence.varied or held.get(name) in (None, "") or is_hidden:
            continue
        is_literal = name == "literal"
        level = held[name]
        yield Condition(str(level) if is_literal else evidence.title(name, level), is_literal)


def wins_all(ranked: Sequence[Choice], shares: Sequence[Shares]) -> bool:
    """Return whether one alternative is the best in each ranked response and in each share.

    An alternative that is equivalent to the best counts as the best, but it must lead somewhere.
    """
    leaders = {choice.leader for choice in ranked}
    for choice in ranked:
        leaders &= {placed.title for placed in choice.placed if placed.group in (LOWEST, EQUAL)}
    return any(all(item.is_best(leader) for item in shares) for leader in leaders)


def mean_shares(evidence: Evidence) -> Iterator[Shares]:
    """Yield the mean of each alternative, per share that a question about them names.

    Shares have no ranking by ratios, but the alternative with the lowest latency may lose the most
    messages.
    """
    factors = factors_of(evidence)
    names = [
        name
        for question in evidence.study.questions
        if set(factors) & set(question.factors)
        for name in question.responses
    ]
    for response in dict.fromkeys(resolve(name, evidence.described) for name in names):
        if not response.share or not evidence.usable.height:
            continue
        values: dict[str, list[float]] = {}
        levels_by_run = levels_in(evidence.usable, factors)
        run_values = column(evidence.usable, response.column).tolist()
        for value, levels in zip(run_values, levels_by_run, strict=True):
            if math.isfinite(value):
                title = " ".join(map(evidence.title, factors, levels))
                values.setdefault(title, []).append(value)
        if len(values) > 1:
            means = {title: float(np.mean(known)) for title, known in values.items()}
            yield Shares(response, means)

"""Find the best alternative of a study with flows in each condition, for the headline.

A mean over conditions, such as a fast and a saturated network, describes none of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wattwire.analysis import not_compared
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.responses import Response
from wattwire.analysis.topics.ranking.choice import Choice
from wattwire.analysis.topics.ranking.order import factors_of
from wattwire.model.derived import column

CONDITIONS_NAMED = 3


@dataclass(frozen=True)
class Leader:
    """The best alternative in a condition, with its geometric mean."""

    title: str
    condition: str
    value: float
    unit: str


@dataclass(frozen=True)
class BestByCondition:
    """The best alternative of a response in each condition, and the number of `others` ranked."""

    response: Response
    leaders: tuple[Leader, ...]
    others: int

    @property
    def title(self) -> str:
        """The alternative that is the best in every condition; "" if none is."""
        titles = {leader.title for leader in self.leaders}
        return titles.pop() if len(titles) == 1 else ""

    @property
    def lowest(self) -> float:
        """The lowest value of a best alternative."""
        return min(leader.value for leader in self.leaders)

    @property
    def highest(self) -> float:
        """The highest value of a best alternative."""
        return max(leader.value for leader in self.leaders)

    @property
    def named(self) -> tuple[Leader, ...]:
        """The conditions that the headline names."""
        return self.leaders[:CONDITIONS_NAMED]

    @property
    def more(self) -> int:
        """The number of other conditions."""
        return len(self.leaders) - len(self.named)


def best_by_condition(evidence: Evidence, choices: Sequence[Choice]) -> BestByCondition | None:
    """Return the best alternatives in the first ranked response; None if none is ranked.

    A condition is a combination of levels of the factors that are no alternatives.
    """
    ranked = [choice for choice in choices if choice.placed]
    if not ranked:
        return None
    response, leaders = ranked[0].response, []
    for condition, means in _means(evidence, response).items():
        pick = max if response.more_is_better else min
        title = pick(means, key=means.__getitem__)
        leaders.append(Leader(title, condition, means[title], response.unit))
    return BestByCondition(response, tuple(leaders), len(ranked) - 1)


def _means(evidence: Evidence, response: Response) -> dict[str, dict[str, float]]:
    """Return condition → alternative → geometric mean; without void or unbounded values.

    Saturated runs that are left out of the answers are left out here too.
    """
    alternatives = factors_of(evidence)
    means: dict[str, dict[str, float]] = {}
    for key, frame in by_treatment(evidence, evidence.usable).items():
        is_left_out = not_compared.left_out(evidence, frame, response)
        is_void = not_compared.void_not_left_out(evidence, frame, response).any()
        values = column(frame, response.column)[~is_left_out]
        if is_void or not (np.isfinite(values) & (values > 0)).all():
            continue
        titles: tuple[list[str], list[str]] = ([], [])
        for factor, level in zip(evidence.varied, key, strict=True):
            titles[factor in alternatives].append(evidence.title_of_word(factor, level))
        mean = math.exp(float(np.mean(np.log(values))))
        means.setdefault(", ".join(titles[0]), {})[" ".join(titles[1])] = mean
    return means

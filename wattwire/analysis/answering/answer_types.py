"""Define an answer of the study, all answers, and their confidence level."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wattwire import stats
from wattwire.analysis.responses import Response

Result = stats.Ratio | stats.Difference | stats.TooFew | stats.NotComputable


NUMBER = (stats.Ratio, stats.Difference)


@dataclass(frozen=True)
class Answer:
    """Comparison of a level with its baseline in a response.

    `with_all` is the result with excluded runs included. The titles are those of both levels.
    """

    question: str
    response: Response
    factor: str
    level: Any
    baseline: Any
    result: Result
    with_all: Result
    by_ranks: stats.Interval | stats.TooFew | stats.NotComputable | None = None
    level_title: str = ""
    baseline_title: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """The column of the response, the factor and the level as text."""
        return self.response.column, self.factor, str(self.level)

    @property
    def interval(self) -> stats.Interval:
        """The interval of the ratio or difference. Raise ValueError if there is no interval."""
        if not isinstance(self.result, NUMBER):
            raise ValueError(f"{self.response.title}: {self.result}")
        return self.result.interval


@dataclass(frozen=True)
class Answers:
    """All answers of the study.

    The intervals are simultaneous over the family of all numeric answers.
    """

    items: tuple[Answer, ...]
    family: int
    level: float
    margin: float | None
    block_count: int
    family_of_all: int = 1
    noise: dict[str, float] = field(default_factory=dict)
    """Noise floor as a |log ratio|, by the response's column; empty without control runs."""
    plain_noise: dict[str, float] = field(default_factory=dict)
    """Noise floor as a |difference| in the response's unit."""

    dependent: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """Key of an answer → the other factor between whose levels its conclusions disagree."""

    def outcome(self, answer: Answer) -> str:
        """Return "different", "equivalent", "undecided", "within noise" or "depends".

        "Within noise" means that identical A/A labels may differ by as much as the levels do.
        "Depends" means that levels of another factor contradict each other, so that no conclusion
        over all of them holds.
        """
        return "depends" if answer.key in self.dependent else self.conclusion(answer)

    def conclusion(self, answer: Answer) -> str:
        """Return the outcome of the result alone, without regard to the levels of other factors.

        A difference is never "equivalent", because the margin is a share.
        """
        interval, column = answer.interval, answer.response.column
        if isinstance(answer.result, stats.Difference):
            conclusion = "different" if interval.excludes(0.0) else "undecided"
            effect, noise = abs(interval.estimate), self.plain_noise.get(column, 0.0)
        else:
            conclusion = stats.conclusion(interval, self.margin)
            effect, noise = abs(math.log(interval.estimate)), self.noise.get(column, 0.0)
        return "within noise" if conclusion == "different" and effect <= noise else conclusion

    def computed(self) -> list[Answer]:
        """Return the answers that are ratios."""
        return [item for item in self.items if isinstance(item.result, stats.Ratio)]

    def differences(self) -> list[Answer]:
        """Return the answers that are differences because a run's value has no logarithm."""
        return [item for item in self.items if isinstance(item.result, stats.Difference)]

"""Compute by how much the latency of a flow grows when other flows are sent."""

from __future__ import annotations

from dataclasses import dataclass

from wattwire import stats
from wattwire.analysis.answering.answer_types import NUMBER, Answer, Answers
from wattwire.analysis.answering.confidence import CONFIDENCE, has_few_degrees
from wattwire.analysis.topics.interactions.numbers import Change, Interactions, RatioAtLevel
from wattwire.model.flows import COLUMN, FLOWS, names_in

MEDIAN = "latency_p50_us"
DECIDED = ("different", "equivalent")
TOO_FEW = "too few"
"""Outcome of an answer whose error has few degrees of freedom."""


@dataclass(frozen=True)
class Growth:
    """The ratio of a flow's median latency with the flows `added` to that without them.

    `change` has the ratios at each level of the factor that changes the ratio most, from its
    exploratory intervals; None if no factor changes it. `outcome` is that of the answer, TOO_FEW,
    or "" without a number. The answer is one of a `family`.
    """

    answer: Answer
    flow: str
    added: tuple[str, ...]
    change: Change | None
    outcome: str = ""
    family: int = 1
    confidence: float = CONFIDENCE

    @property
    def at_levels(self) -> tuple[RatioAtLevel, ...]:
        """The ratios at the levels that change the growth; empty if one of them is imprecise."""
        levels = self.change.levels if self.change else ()
        is_imprecise = any(has_few_degrees(at.interval.degrees) for at in levels)
        return () if is_imprecise else levels

    @property
    def ratio(self) -> stats.Interval | None:
        """The decided ratio over all levels; None if it is undecided or depends on a level."""
        is_decided = isinstance(self.answer.result, stats.Ratio) and self.outcome in DECIDED
        return self.answer.interval if is_decided and self.change is None else None

    @property
    def reason(self) -> str:
        """The reason for the lack of a number; "" with a number."""
        return "" if isinstance(self.answer.result, NUMBER) else str(self.answer.result)


def growths(answers: Answers, interactions: Interactions) -> list[Growth]:
    """Return the growth of median latency for each answer that adds flows to its baseline."""
    by_flow: dict[tuple[str, str], Growth] = {}
    for answer in answers.items:
        of_flow = COLUMN.fullmatch(answer.response.column)
        if answer.factor != FLOWS or not of_flow or of_flow["stem"] != MEDIAN:
            continue
        before, after = names_in(answer.baseline), names_in(answer.level)
        added = tuple(name for name in after if name not in before)
        if not added or not {*before, of_flow["flow"]} <= {*after}:
            continue
        own = (change for change in interactions.changes if change.answer is answer)
        largest, outcome = next(own, None), _outcome(answers, answer)
        growth = Growth(answer, of_flow["flow"], added, largest, outcome, answers.family)
        by_flow.setdefault((of_flow["flow"], str(answer.level)), growth)
    return list(by_flow.values())


def _outcome(answers: Answers, answer: Answer) -> str:
    """Return the outcome of an answer; "" for an answer without a number."""
    if not isinstance(answer.result, NUMBER):
        return ""
    if has_few_degrees(answer.interval.degrees):
        return TOO_FEW
    return answers.outcome(answer)

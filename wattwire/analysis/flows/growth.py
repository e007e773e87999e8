"""Compute by how much the latency of a flow grows when other flows are sent."""

from __future__ import annotations

from dataclasses import dataclass

from wattwire.analysis.answering.answer_types import Answer, Answers
from wattwire.analysis.topics.interactions.numbers import Change, Interactions
from wattwire.model.flows import COLUMN, FLOWS, names_in

MEDIAN = "latency_p50_us"


@dataclass(frozen=True)
class Growth:
    """The ratio of a flow's median latency with the flows `added` to that without them.

    `change` has the ratios at each level of the factor that changes the ratio most, from its
    exploratory intervals; None if no factor changes it.
    """

    answer: Answer
    flow: str
    added: tuple[str, ...]
    change: Change | None


def growths(answers: Answers, interactions: Interactions) -> list[Growth]:
    """Return the growth of median latency for each answer that adds flows to its baseline."""
    found: dict[tuple[str, str], Growth] = {}
    for answer in answers.items:
        of_flow = COLUMN.fullmatch(answer.response.column)
        if answer.factor != FLOWS or not of_flow or of_flow["stem"] != MEDIAN:
            continue
        before, after = names_in(answer.baseline), names_in(answer.level)
        added = tuple(name for name in after if name not in before)
        if not added or not {*before, of_flow["flow"]} <= {*after}:
            continue
        own = (change for change in interactions.changes if change.answer is answer)
        largest = next(own, None)
        growth = Growth(answer, of_flow["flow"], added, largest)
        found.setdefault((of_flow["flow"], str(answer.level)), growth)
    return list(found.values())

"""Compute by how much the latency of a flow grows when other flows are sent."""

from __future__ import annotations

from dataclasses import dataclass

from wattwire.analysis.answering.answer_types import Answer, Answers
from wattwire.analysis.dataset import Evidence
from wattwire.analysis.interactions import AtLevel, by_level
from wattwire.model.flows import COLUMN, FLOWS, names_in

MEDIAN = "latency_p50_us"


@dataclass(frozen=True)
class Growth:
    """The ratio of a flow's median latency with the flows `added` to that without them.

    `at_levels` contains the ratio at each level of the question's next factor; it is empty if the
    question has no other factor.
    """

    answer: Answer
    flow: str
    added: tuple[str, ...]
    at_levels: tuple[AtLevel, ...]


def growths(evidence: Evidence, answers: Answers) -> list[Growth]:
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
        factors = next(q.factors for q in evidence.study.questions if q.id == answer.question)
        rows = by_level(evidence, answers, [answer])
        others = [row for row in rows if row.other in factors]
        first = [row for row in others if row.other == others[0].other]
        growth = Growth(answer, of_flow["flow"], added, tuple(first))
        found.setdefault((of_flow["flow"], str(answer.level)), growth)
    return list(found.values())

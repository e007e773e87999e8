"""Compute the rates, latencies and losses of the flows that a study runs at the same time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wattwire.analysis.answering.answer_types import Answers
from wattwire.analysis.charts import BOX_RUNS_MIN, Chart, Point, rounded
from wattwire.analysis.dataset import Evidence, by_treatment
from wattwire.analysis.topics.flows.arrivals import Arrivals, arrivals
from wattwire.analysis.topics.flows.best_by_condition import BestByCondition, best_by_condition
from wattwire.analysis.topics.flows.growth import MEDIAN, Growth, growths
from wattwire.analysis.topics.flows.queues import ReliableLosses, reliable_losses
from wattwire.analysis.topics.flows.results import FlowResult, flow_results
from wattwire.analysis.topics.interactions.numbers import Interactions
from wattwire.analysis.topics.ranking.numbers import RankedAlternatives
from wattwire.model.derived import column

PANELS_PER_ROW = 2


@dataclass(frozen=True)
class Flows:
    """The flows of each treatment; empty for a study without flows.

    `chart` has the median latency of each run; None if no run has one. `has_lost_medians` is true
    if a run lost half of a flow's messages, so that its median is infinite. `arrivals`, `best` and
    `growths` are for the headline. `best` is None if no response is ranked.
    """

    rows: tuple[FlowResult, ...] = ()
    chart: Chart | None = None
    has_lost_medians: bool = False
    reliable: ReliableLosses | None = None
    arrivals: tuple[Arrivals, ...] = ()
    best: BestByCondition | None = None
    growths: tuple[Growth, ...] = ()
    runs_of_box: int = BOX_RUNS_MIN


def flows(
    evidence: Evidence, answers: Answers, interactions: Interactions, ranking: RankedAlternatives
) -> Flows:
    """Return the flows of each treatment, and their growth when other flows are sent."""
    if not evidence.study.flows:
        return Flows()
    rows = tuple(flow_results(evidence))
    points, has_lost_medians = _points(evidence)
    return Flows(
        rows,
        _chart(evidence, points) if points else None,
        has_lost_medians,
        reliable_losses(evidence),
        arrivals(evidence, rows),
        best_by_condition(evidence, ranking.choices),
        tuple(growths(answers, interactions)),
    )


def _points(evidence: Evidence) -> tuple[list[Point], bool]:
    """Return a point per run and flow with a finite median, and whether a median is infinite."""
    points: list[Point] = []
    has_infinite = False
    for key, frame in by_treatment(evidence, evidence.usable).items():
        levels = dict(zip(evidence.varied, key, strict=True))
        treatment = evidence.treatment_title(levels) or evidence.study.heading
        for flow in evidence.study.flows:
            values = column(frame, f"{MEDIAN}.flow.{flow.name}").tolist()
            has_infinite |= math.inf in values
            points += [
                {
                    "value": rounded(value), "colour": flow.name, "panel": flow.name,
                    "row": treatment, "treatment": treatment, "run": run,
                }
                for value, run in zip(values, frame["run"].to_list(), strict=True)
                if math.isfinite(value) and value > 0
            ]  # fmt: skip
    return points, has_infinite


def _chart(evidence: Evidence, points: Sequence[Point]) -> Chart:
    names = [flow.name for flow in evidence.study.flows]
    rows = list(dict.fromkeys(point["row"] for point in points))
    return Chart(points, names, "flow", rows, names, PANELS_PER_ROW)

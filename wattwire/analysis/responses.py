"""Define the responses that a study may name: their names, units and wording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from wattwire.analysis.dataset import Evidence
from wattwire.model import metrics
from wattwire.model.derived import column
from wattwire.model.flows import COLUMN
from wattwire.model.questions import Question


@dataclass(frozen=True)
class Response:
    """A number per run: `column` of the summary, in `unit`.

    `had` is the verb in "A {had} 0.5 times the {title} of B". `energy` marks responses that require
    an energy meter. `stated_direction` is the better direction of an imported column, "" if it is
    unknown; it is None for all other columns.
    """

    column: str
    title: str
    unit: str
    had: str = "had"
    energy: bool = False
    share: bool = False
    stated_direction: str | None = None

    @property
    def direction(self) -> str:
        """The better direction: LOWER or HIGHER, or "" if it is unknown.

        It is LOWER for columns that the registry lacks, except for imported ones.
        """
        if self.stated_direction is not None:
            return self.stated_direction
        stem, _, name = self.column.partition(".")
        if metrics.is_printed(stem):
            metric = metrics.printed(name)
        else:
            metric = metrics.METRICS.get(self.column.split(".flow.")[0])
        return metrics.LOWER if metric is None else metric.direction

    @property
    def more_is_better(self) -> bool:
        """Whether a higher value is better; False if this is unknown."""
        return self.direction == metrics.HIGHER


def response_of(name: str) -> Response:
    """Return the response of a metric, with the registry's wording (`model/metrics/`)."""
    metric = metrics.METRICS[name]
    energy = metric.needs == metrics.ENERGY
    return Response(name, metric.words, metric.unit, metric.verb, energy, metric.is_share)


CPU = response_of("cpu_us_per_message")
MEMORY = response_of("memory_kib_per_node")
LATENCY_P50 = response_of("latency_p50_us")
OFFERED = tuple(response_of(name) for name in metrics.metrics_in(metrics.OFFERED))
"""Responses that a report shows without a question, in this order."""


def resolve(name: str, described: Mapping[str, Mapping[str, str]] | None = None) -> Response:
    """Return the response with the name that a study uses; any summary column is allowed.

    `described` contains the columns of imported data (unit, title, had, direction), which take
    precedence. Without a direction, the name and the unit give it.
    """
    if described and name in described:
        description = described[name]
        title, unit = (
            description.get("title") or name.replace("_", " "),
            description.get("unit", ""),
        )
        known_metric = metrics.find(name)
        direction = known_metric.direction if known_metric else metrics.direction_of(title, unit)
        direction = description.get("direction", direction)
        return Response(
            name, title, unit, description.get("had", "had"), stated_direction=direction
        )
    of_flow = COLUMN.fullmatch(name)
    if of_flow and of_flow["stem"] in metrics.OF_FLOWS:
        whole = response_of(of_flow["stem"])
        return replace(whole, column=name, title=f"{whole.title} of {of_flow['flow']}")
    stem, is_hop, hop = name.partition(".hop.")
    if is_hop and stem in metrics.METRICS:
        metric_of_hop = metrics.METRICS[stem]
        return Response(name, f"{metric_of_hop.words}, hop {hop}", metric_of_hop.unit)
    metric = metrics.find(name)
    if metric is not None and metric.of == metrics.PRINTED:
        return Response(name, metric.words, metric.unit)
    if metric is not None and metric.of == metrics.COUNTER and "." in name:
        _, service, counter = name.split(".")
        return Response(name, f"{counter.replace('_', ' ')} of the {service}", metric.unit)
    if metric is not None and "." not in name:
        return response_of(metric.name)
    return Response(name, name.replace("_", " "), "", energy="energy" in name or "power" in name)


def offered(
    questions: Sequence[Question], described: Mapping[str, Mapping[str, str]]
) -> tuple[Response, ...]:
    """Return the responses of the questions, of the imported data and of OFFERED, in this order."""
    requested = [name for question in questions for name in question.responses]
    named = [resolve(name, described) for name in (*requested, *described)]
    by_column: dict[str, Response] = {}
    for response in (*named, *OFFERED):
        by_column.setdefault(response.column, response)
    return tuple(by_column.values())


def question_responses(evidence: Evidence, with_shares: bool = False) -> list[Response]:
    """Return the distinct responses of the study's questions that have ratios.

    If `with_shares` is set, shares are included, although they have only differences.
    """
    names = [name for question in evidence.study.questions for name in question.responses]
    responses = dict.fromkeys(resolve(name) for name in names)
    return [response for response in responses if with_shares or not response.share]


def ordered_response(evidence: Evidence) -> Response:
    """Return the response that is shown and tested in run order: latency without CPU time."""
    return CPU if measured(evidence.usable, CPU) else LATENCY_P50


def measured(frame: pl.DataFrame, response: Response) -> bool:
    """Return whether any run has the response."""
    values = column(frame, response.column)
    return bool((values == values).any())

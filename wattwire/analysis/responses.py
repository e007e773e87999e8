"""Responses a study may ask for: their names, units and the words of an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from wattwire.model import metrics
from wattwire.model.derived import column


@dataclass(frozen=True)
class Response:
    """A number per run: `column` of the summary, in `unit`.

    `had` is the verb between two levels in "A {had} 0.5 times the {title} of B". `energy` marks
    responses that only a measuring meter can give.
    """

    column: str
    title: str
    unit: str
    had: str = "had"
    energy: bool = False
    share: bool = False

    @property
    def more_is_better(self) -> bool:
        """Whether less is worse; of time, cost and loss, and of what is not known, more is."""
        metric = metrics.METRICS.get(self.column)
        return metric is not None and metric.direction == metrics.HIGHER


def response_of(name: str) -> Response:
    """Return the response of a metric, in the registry's words (`model/metrics.py`)."""
    metric = metrics.METRICS[name]
    energy = metric.needs == metrics.ENERGY
    return Response(name, metric.words, metric.unit, metric.verb, energy, metric.is_share)


CPU = response_of("cpu_us_per_message")
MEMORY = response_of("memory_kib_per_node")
LATENCY_P50 = response_of("latency_p50_us")
OFFERED = (
    CPU,
    MEMORY,
    response_of("wire_bytes_per_message"),
    LATENCY_P50,
    response_of("latency_p90_us"),
    response_of("latency_p99_us"),
    response_of("latency_mean_us"),
    response_of("time_us_per_message"),
    response_of("energy_idle_subtracted_uj_per_message"),
    response_of("energy_uj_per_message"),
    response_of("power_above_machine_w"),
    response_of("loss_share"),
    response_of("failed_share"),
    response_of("startup_s_max"),
    response_of("discovery_s_max"),
)
"""What a page looks at where no question names it, in this order."""


def resolve(name: str, described: Mapping[str, Mapping[str, str]] | None = None) -> Response:
    """The response that a study calls `name`; a column of the summary stands for itself.

    `described` holds columns that came with the data (unit, title, had): they are what they are
    called.
    """
    if described and name in described:
        told = described[name]
        title = told.get("title") or name.replace("_", " ")
        return Response(name, title, told.get("unit", ""), told.get("had", "had"))
    metric = metrics.find(name)
    if metric is not None and "." not in name:
        return response_of(metric.name)
    return Response(name, name.replace("_", " "), "", energy="energy" in name or "power" in name)


def offered(
    questions: Sequence[Mapping[str, Any]], described: Mapping[str, Mapping[str, str]]
) -> tuple[Response, ...]:
    """The responses that questions name, in order, then those of the data, then all known ones."""
    asked = [name for question in questions for name in question.get("responses", [])]
    named = [resolve(name, described) for name in (*asked, *described)]
    found: dict[str, Response] = {}
    for response in (*named, *OFFERED):
        found.setdefault(response.column, response)
    return tuple(found.values())


def measured(frame: pl.DataFrame, response: Response) -> bool:
    """Whether any run carries the response."""
    values = column(frame, response.column)
    return bool((values == values).any())

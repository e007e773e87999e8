"""Responses a study may ask for: their names, units and the words of an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from wattwire.model import metrics
from wattwire.report.evidence import column


@dataclass(frozen=True)
class Response:
    """A number per run: `column` of the summary, in `unit`.

    `had` goes between two levels in "A {had} 0.5 times the {title} of B". `energy` marks
    responses that only a measuring meter can give.
    """

    column: str
    title: str
    unit: str
    had: str = "had"
    energy: bool = False
    share: bool = False


CPU = Response("cpu_us_per_message", "CPU time per message", "µs", "used")
MEMORY = Response("memory_kib_per_node", "memory per node", "KiB", "held")
LATENCY_P50 = Response("latency_p50_us", "median latency", "µs")

_KNOWN: dict[str, Response] = {
    response.column: response
    for response in (
        CPU,
        MEMORY,
        Response("wire_bytes_per_message", "bytes on the wire per message", "B", "sent"),
        LATENCY_P50,
        Response("latency_p90_us", "90th percentile of latency", "µs"),
        Response("latency_p99_us", "99th percentile of latency", "µs"),
        Response("latency_mean_us", "mean latency", "µs"),
        Response("time_us_per_message", "time per message", "µs", "took"),
        Response(
            "energy_idle_subtracted_uj_per_message",
            "energy per message by idle subtraction",
            "µJ",
            "used",
            energy=True,
        ),
        Response("energy_uj_per_message", "energy per message", "µJ", "used", energy=True),
        Response(
            "power_above_machine_w", "power above the machine's own", "W", "drew", energy=True
        ),
        Response("loss_share", "share of messages lost", "", share=True),
        Response("failed_share", "share of calls that failed", "", share=True),
        Response("startup_s_max", "slowest node's start", "s"),
        Response("discovery_s_max", "slowest discovery", "s"),
    )
}
"""Responses with words of their own, by their column."""


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
    if metric is not None and metric.name in _KNOWN and "." not in name:
        return _KNOWN[metric.name]
    return Response(name, name.replace("_", " "), "", energy="energy" in name or "power" in name)


def offered(
    questions: Sequence[Mapping[str, Any]], described: Mapping[str, Mapping[str, str]]
) -> tuple[Response, ...]:
    """The responses that questions name, in order, then those of the data, then all known ones."""
    asked = [name for question in questions for name in question.get("responses", [])]
    named = [resolve(name, described) for name in (*asked, *described)]
    found: dict[str, Response] = {}
    for response in (*named, *_KNOWN.values()):
        found.setdefault(response.column, response)
    return tuple(found.values())


def measured(frame: pl.DataFrame, response: Response) -> bool:
    """Whether any run carries the response."""
    values = column(frame, response.column)
    return bool((values == values).any())

"""Responses a study may ask for: their names, units and the words of an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

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

_KNOWN: tuple[tuple[str, Response], ...] = (
    (r"cpu(_[nu]s)?(_per_message)?", CPU),
    (r"memory(_bytes|_kib|_kib_per_node)?", MEMORY),
    (
        r"wire_bytes(_per_message)?",
        Response("wire_bytes_per_message", "bytes on the wire per message", "B", "sent"),
    ),
    (r"latency(_p50)?(_[nu]s)?", LATENCY_P50),
    (r"latency_p90(_[nu]s)?", Response("latency_p90_us", "90th percentile of latency", "µs")),
    (r"latency_p99(_[nu]s)?", Response("latency_p99_us", "99th percentile of latency", "µs")),
    (r"latency_mean(_[nu]s)?", Response("latency_mean_us", "mean latency", "µs")),
    (
        r"time(_[nu]s)?(_per_message)?",
        Response("time_us_per_message", "time per message", "µs", "took"),
    ),
    (
        r"energy_idle_subtracted(_[um]?j_per_message)?",
        Response(
            "energy_idle_subtracted_uj_per_message",
            "energy per message by idle subtraction",
            "µJ",
            "used",
            energy=True,
        ),
    ),
    (
        r"energy(_message_j|_[um]?j_per_message)?",
        Response("energy_uj_per_message", "energy per message", "µJ", "used", energy=True),
    ),
    (
        r"power(_[um]?w)?",
        Response(
            "power_above_machine_w", "power above the machine's own", "W", "drew", energy=True
        ),
    ),
    (r"loss(_share)?|lost", Response("loss_share", "share of messages lost", "", share=True)),
    (r"startup(_s_max|_[nmu]?s)?", Response("startup_s_max", "slowest node's start", "s")),
    (r"discovery(_s_max|_[nmu]?s)?", Response("discovery_s_max", "slowest discovery", "s")),
)


def resolve(name: str, described: Mapping[str, Mapping[str, str]] | None = None) -> Response:
    """The response that a study calls `name`; a column of the summary stands for itself.

    `described` holds columns that came with the data (unit, title, had): they are what they are
    called.
    """
    if described and name in described:
        told = described[name]
        title = told.get("title") or name.replace("_", " ")
        return Response(name, title, told.get("unit", ""), told.get("had", "had"))
    for pattern, response in _KNOWN:
        if re.fullmatch(pattern, name):
            return response
    return Response(name, name.replace("_", " "), "", energy="energy" in name or "power" in name)


def is_known(name: str) -> bool:
    """Whether `name` is a word for a response, beyond the columns of the summary."""
    return any(re.fullmatch(pattern, name) for pattern, _ in _KNOWN)


def known_columns() -> tuple[str, ...]:
    """The columns of all responses that have words of their own."""
    return tuple(response.column for _, response in _KNOWN)


def offered(
    questions: Sequence[Mapping[str, Any]], described: Mapping[str, Mapping[str, str]]
) -> tuple[Response, ...]:
    """The responses that questions name, in order, then those of the data, then all known ones."""
    asked = [name for question in questions for name in question.get("responses", [])]
    named = [resolve(name, described) for name in (*asked, *described)]
    found: dict[str, Response] = {}
    for response in (*named, *(response for _, response in _KNOWN)):
        found.setdefault(response.column, response)
    return tuple(found.values())


def measured(frame: pl.DataFrame, response: Response) -> bool:
    """Whether any run carries the response."""
    values = column(frame, response.column)
    return bool((values == values).any())

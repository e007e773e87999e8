"""Build the section on the flows of a study that runs several flows at the same time."""

from __future__ import annotations

from typing import Any

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.flows.results import QUANTILES, results
from wattwire.report.page_parts import PagePart
from wattwire.report.parts import Column, Section, Table
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases(
    "flows",
    {
        "title": "Flows",
        "table": "Rate, latency and loss of each flow",
        "note": (
            "All flows of a treatment run at the same time, each with its own sender and receiver. "
            "“Offered” is the rate of the study, and “achieved” is the rate at which the sender "
            "sent; it is lower if the sender or its network is saturated. “Arrived” is the payload "
            "that the receiver got per second of the window, without the warm-up. Rates are means "
            "over the runs, and latencies are medians over the runs. A lost message has an "
            "infinite latency. A percentile needs enough messages in each run. Expected and lost "
            "messages are sums over the runs, without the warm-up."
        ),
    },
)
_TITLES = dict(zip(QUANTILES, ("median latency", "p90", "p99"), strict=True))


def section(evidence: Evidence) -> Section | None:
    """Return the section on flows, or None for a study without flows or without valid runs."""
    rows: list[dict[str, Any]] = [
        {
            **dict(zip(evidence.varied, result.treatment, strict=True)),
            "flow": result.flow,
            "runs": result.runs,
            "payload": result.payload_bytes,
            "offered": result.offered_hz,
            "achieved": result.achieved_hz,
            "arrived": result.throughput,
            **result.latency_us,
            "expected": result.expected,
            "lost": result.lost,
        }
        for result in results(evidence)
    ]
    if not rows:
        return None
    columns = [
        *factor_columns(evidence),
        Column("flow", "flow"),
        Column("runs", "runs", "measured"),
        Column("payload", "payload", "measured", "B"),
        Column("offered", "offered rate", "measured", "Hz"),
        Column("achieved", "achieved rate", "measured", "Hz"),
        Column("arrived", "arrived", "measured", "bytes/s"),
        *(Column(stem, title, "measured", "µs") for stem, title in _TITLES.items()),
        Column("expected", "expected", "measured"),
        Column("lost", "lost", "measured"),
    ]
    part = Section("flows", PHRASES("title"))
    part.parts.append(Table("flows", PHRASES("table"), columns, rows, PHRASES("note")))
    return part


PART = PagePart(35, lambda data: [section(data.evidence)], measured_only=True, of_messages=True)

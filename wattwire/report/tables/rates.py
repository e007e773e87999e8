"""Build the table of rates: offered by each sender and in total, sent, and delivered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from wattwire.analysis.dataset import Evidence, all_levels, by_treatment, levels_of
from wattwire.model.deployment import deployment_of_run, has_replies
from wattwire.model.derived import column
from wattwire.report.parts import Column, Table
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrase, Phrases

PHRASES = Phrases(
    "rates",
    {
        "title": "Rates",
        "note": (
            "“Each sender” offers the study's rate; in a closed loop, no rate is offered. Every "
            "rate is per second of the same span, whose mean length is in the last column: it "
            "begins after the warm-up and ends with the schedule, with the last send if a sender "
            "was late, or in a closed loop with the last counted call. “Sent”: by all senders. "
            "“{delivered}”: answered calls, or messages that arrived, once for each receiver. "
            "Values are means over the valid runs."
        ),
        "calls": "calls/s",
        "messages": "messages/s",
        "both": "calls or messages/s",
    },
)

TOTALS = {
    "offered": "rate_hz_offered",
    "sent": "rate_hz_achieved",
    "per_s": "rate_hz_delivered",
    "window_s": "rate_window_s",
}
"""Columns of the table → columns of the summary."""


def table(evidence: Evidence) -> Table:
    """Return the table with a row for each treatment."""
    rows = []
    for key, frame in by_treatment(evidence, evidence.usable).items():
        document = evidence.runs[frame["run"][0]]
        senders = sum(node.sends for node in deployment_of_run(document).nodes)
        rows.append(
            {
                **dict(zip(evidence.varied, key, strict=True)),
                "runs": frame.height,
                "senders": senders,
                "each": _rate_hz(all_levels(document)),
                **{name: mean(frame, total) for name, total in TOTALS.items()},
            }
        )
    delivered = delivered_title(evidence)
    group = "rate in total (per second)"
    return Table(
        "rates",
        PHRASES("title"),
        [
            *factor_columns(evidence),
            Column("runs", "runs", "measured"),
            Column("senders", "senders"),
            Column("each", "each sender", unit="Hz"),
            Column("offered", "offered", group=group),
            Column("sent", "sent", "measured", group=group),
            Column("per_s", delivered, "measured", group=group),
            Column("window_s", "span", "measured", "s"),
        ],
        rows,
        PHRASES("note", delivered=delivered),
    )


def delivered_title(evidence: Evidence) -> Phrase:
    """Return the title of a column with the rate of delivery: calls, messages or both."""
    kinds = {has_replies(pattern) for pattern in levels_of(evidence.usable, "pattern")}
    return PHRASES("both" if len(kinds) > 1 else "calls" if kinds == {True} else "messages")


def delivered_per_s(frame: pl.DataFrame) -> float | None:
    """Return the mean rate of delivery of the runs; None if it is unknown."""
    return mean(frame, TOTALS["per_s"])


def mean(frame: pl.DataFrame, name: str) -> float | None:
    """Return the mean of the known values of a column; None without any."""
    values = column(frame, name)
    values = values[np.isfinite(values)]
    return float(values.mean()) if values.size else None


def _rate_hz(levels: Mapping[str, Any]) -> float | None:
    """Return the rate of each sender; None in a closed loop and with flows of their own rates."""
    if levels.get("loop") == "closed" or "flows" in levels:
        return None
    if levels.get("interval_s"):
        return 1.0 / float(levels["interval_s"])
    return float(levels["rate_hz"]) if levels.get("rate_hz") else None

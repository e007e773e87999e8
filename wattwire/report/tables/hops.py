"""Show the losses and times of each hop of pipelines."""

from __future__ import annotations

import math
from typing import Any

from wattwire.analysis.dataset import Evidence
from wattwire.analysis.hops import hops_of
from wattwire.report.parts import Column, Fold, Table
from wattwire.report.tables.factor_columns import factor_columns
from wattwire.report.words.phrases import Phrases

PHRASES = Phrases(
    "hops",
    {
        "title": "Losses and latency of each hop",
        "note": (
            "Hop N leads to the node at position N of the pipeline. The latency of a hop starts "
            "when the send call is entered and ends when the next node's callback is entered. "
            "The relay's time is the time from the entry of its callback to the entry of its "
            "send call. Both are geometric means of the runs' medians. For each message, the "
            "latencies of all hops and the times of all relays add up to the pipeline's time since "
            "the send call; their medians do not. The losses of all hops add up to the messages "
            "that did not reach the sink. If a relay left no records, the losses of its two hops "
            "are one number, in the row of the later hop. Undelivered messages were still in the "
            "queue of a saturated hop when the receivers' patience (linger_ms) ended; they are "
            "not lost."
        ),
    },
)


def fold(evidence: Evidence) -> Fold | None:
    """Return the fold with a row for each hop of each treatment, or None without pipelines."""
    rows: list[dict[str, Any]] = [
        {
            **dict(zip(evidence.varied, hop.treatment, strict=True)),
            "hop": hop.hop,
            "runs": hop.runs,
            "latency_us": _known(hop.latency_us),
            "relay_us": _known(hop.relay_us),
            "lost": hop.lost,
            "undelivered": hop.undelivered,
        }
        for hop in hops_of(evidence)
    ]
    if not rows:
        return None
    columns = [
        *factor_columns(evidence),
        Column("hop", "hop", "measured"),
        Column("runs", "runs", "measured"),
        Column("latency_us", "latency", "measured", "µs"),
        Column("relay_us", "relay's time", "measured", "µs"),
        Column("lost", "lost", "measured"),
        Column("undelivered", "undelivered", "measured"),
    ]
    table = Table("hops", PHRASES("title"), columns, rows, PHRASES("note"))
    return Fold(PHRASES("title"), [table])


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value

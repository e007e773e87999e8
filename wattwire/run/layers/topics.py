"""Compute a row per topic, publisher and subscription, with the times of its layers."""

from __future__ import annotations

from typing import Any

import polars as pl

from wattwire.model.layers import LAYERS
from wattwire.run.layers.deliveries import Deliveries
from wattwire.run.node_specs import SECOND_NS

QUANTILES = {"p50": 0.5, "p95": 0.95}


def topic_rows(result: Deliveries) -> list[dict[str, Any]]:
    """Return a row per topic and pair of nodes: counts, rate (1/s), latency and layers (ns).

    The layers are means, because only means add up to the mean latency.
    """
    published = {(row["topic"], row["node"]): _published(row) for row in result.topics}
    latency = pl.col("latency_ns")
    rows = (
        result.frame.group_by("topic", "sender", "receiver", maintain_order=True)
        .agg(
            pl.len().alias("deliveries"),
            pl.col("unmarked").sum(),
            latency.mean().alias("mean_ns"),
            *(latency.quantile(q, "linear").alias(f"{name}_ns") for name, q in QUANTILES.items()),
            pl.struct(pl.col(layer.column).mean().alias(layer.name) for layer in LAYERS).alias(
                "layers_ns"
            ),
            pl.struct(pl.col(layer.column).median().alias(layer.name) for layer in LAYERS).alias(
                "layer_medians_ns"
            ),
        )
        .to_dicts()
    )
    received = {(row["topic"], row["sender"]) for row in rows}
    return [
        *(row | published.get((row["topic"], row["sender"]), {}) for row in rows),
        *(
            {"topic": topic, "sender": sender, "receiver": None, "deliveries": 0} | counts
            for (topic, sender), counts in published.items()
            if (topic, sender) not in received
        ),
    ]


def _published(row: dict[str, Any]) -> dict[str, Any]:
    """Return the number of messages, and their rate (1/s) from the first to the last one."""
    count, span_s = row["published"], row["published_ns"] / SECOND_NS
    return {"published": count, "rate_hz": (count - 1) / span_s if span_s > 0 else None}

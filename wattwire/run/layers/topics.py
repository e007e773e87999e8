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

    The layers are means, because only means add up to the mean latency; a delivery that lacks a
    layer of others has 0 ns of it. `not_taken` is the number of messages that were published since
    the subscription existed and not taken; latency and layers are those of the messages taken.
    Without a delivery they are absent. A topic without a subscription has the receiver None.
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
            pl.col("message").n_unique(),
            pl.struct(_mean(layer.column).alias(layer.name) for layer in LAYERS).alias("layers_ns"),
            pl.struct(pl.col(layer.column).median().alias(layer.name) for layer in LAYERS).alias(
                "layer_medians_ns"
            ),
        )
        .to_dicts()
    )
    for row in rows:
        key = row["topic"], row["sender"], row["receiver"]
        row["not_taken"] = result.expected[key] - row.pop("message")
    received = {(row["topic"], row["sender"], row["receiver"]) for row in rows}
    rows += [
        {"topic": topic, "sender": sender, "receiver": receiver, "deliveries": 0,
         "not_taken": count}
        for (topic, sender, receiver), count in result.expected.items()
        if (topic, sender, receiver) not in received
    ]  # fmt: skip
    heard = {(topic, sender) for topic, sender, _ in result.expected}
    rows += [
        {"topic": topic, "sender": sender, "receiver": None, "deliveries": 0}
        for topic, sender in published
        if (topic, sender) not in heard
    ]
    return [row | published[row["topic"], row["sender"]] for row in rows]


def _mean(column: str) -> pl.Expr:
    """Return the mean of a layer, in which nulls are 0; null if no delivery has it."""
    values = pl.col(column)
    return pl.when(values.is_not_null().any()).then(values.fill_null(0).mean())


def _published(row: dict[str, Any]) -> dict[str, Any]:
    """Return the number of messages, and their rate (1/s) from the first to the last one."""
    count, span_s = row["published"], row["published_ns"] / SECOND_NS
    return {"published": count, "rate_hz": (count - 1) / span_s if span_s > 0 else None}

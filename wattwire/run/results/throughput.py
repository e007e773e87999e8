"""Compute the payload and the messages that the flows of a run delivered per second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from wattwire.model.deliveries import MESSAGE
from wattwire.model.deployment import Flow
from wattwire.model.sample_codes import FLAG_CORRUPT, FLAG_FAILED, FLAG_TIMEOUT

THROUGHPUT, RATE = "throughput_bytes_per_s", "rate_hz_delivered"


def throughput(
    parts: Iterable[pl.DataFrame], flows: Sequence[Flow], begin_ns: int, end_ns: int
) -> dict[str, float]:
    """Return the throughput (B/s) and the rate of delivery (Hz) from `begin_ns` to `end_ns`.

    The payload of a message counts once for each receiver, when it arrives first. The payload of a
    request counts when its reply arrives. Corrupt payloads do not count.
    """
    seconds = (end_ns - begin_ns) / 1e9
    if seconds <= 0 or not flows:
        return {}
    payload_bytes = messages = 0
    for part in parts:
        for flow in flows:
            delivered_bytes = _delivered_bytes(part, flow, begin_ns, end_ns)
            payload_bytes += int(delivered_bytes.sum())
            messages += len(delivered_bytes)
    return {THROUGHPUT: payload_bytes / seconds, RATE: messages / seconds}


def _delivered_bytes(part: pl.DataFrame, flow: Flow, begin_ns: int, end_ns: int) -> pl.Series:
    """Return the length of each payload that arrived first in the span."""
    nodes = [flow.sender] if flow.result else list(flow.receivers)
    arrived = part.filter(
        pl.col("sender") == flow.sender,
        pl.col("node").is_in(nodes),
        pl.col("kind") == (flow.result or MESSAGE),
        (pl.col("flags") & (FLAG_CORRUPT | FLAG_FAILED | FLAG_TIMEOUT)) == 0,
        pl.col("end_ns").is_not_null(),
    ).sort("end_ns")
    first = arrived.unique(["node", "counter"], keep="first", maintain_order=True)
    in_span = (pl.col("end_ns") >= begin_ns) & (pl.col("end_ns") < end_ns)
    return first.filter(in_span)["bytes"].cast(pl.Int64)

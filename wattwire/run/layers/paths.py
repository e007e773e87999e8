"""Follow messages through the graph: which message caused which.

What a thread publishes between two takes was caused by the first of these. A call of a timer, or a
wait, ends the work that a take began.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from wattwire.model.layers import LAYERS

HOPS_MAX = 64
"""Maximum number of hops of a path, because the messages of a loop are a path without an end."""


def path_rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Return all paths with their latency and their parts (ns), by length and by median.

    A path begins with a message that no other message caused, and ends with one that caused none.
    `hops` has each topic and the means of its latency and layers; `nodes` the mean time from the
    take of a message to the publishing of the next one.
    """
    chains = _chains(frame)
    rows: list[dict[str, Any]] = []
    for (start, topics, nodes), ends in chains.items():
        chain = np.array(ends)
        begin, end = (frame[name].to_numpy() for name in ("begin_ns", "end_ns"))
        latency_ns = end[chain[:, -1]] - begin[chain[:, 0]]
        work_ns = begin[chain[:, 1:]] - end[chain[:, :-1]]
        rows.append(
            {
                "started_by": start,
                "nodes": list(nodes),
                "topics": list(topics),
                "messages": len(chain),
                "mean_ns": float(latency_ns.mean()),
                "p50_ns": float(np.quantile(latency_ns, 0.5)),
                "p95_ns": float(np.quantile(latency_ns, 0.95)),
                "hops_ns": [
                    float((end[rows_of_hop] - begin[rows_of_hop]).mean()) for rows_of_hop in chain.T
                ],
                "work_ns": [float(times.mean()) for times in work_ns.T],
                "layers_ns": {
                    layer.name: _mean_sum(frame[layer.column], chain) for layer in LAYERS
                },
            }
        )
    rows.sort(key=lambda row: (-len(row["topics"]), -row["p50_ns"]))
    return rows


def _mean_sum(values: pl.Series, chain: np.ndarray[Any, Any]) -> float | None:
    """Return the mean over the messages of a layer's sum (ns) over the hops; None if unknown."""
    if values.null_count() == len(values):
        return None
    return float(values.fill_null(0).to_numpy()[chain].sum(axis=1).mean())


Key = tuple[str, tuple[str, ...], tuple[str, ...]]


def _chains(frame: pl.DataFrame) -> dict[Key, list[list[int]]]:
    """Return the rows of each path, by the start, the topics and the nodes of the path."""
    causes, messages = frame["cause"].to_list(), frame["message"].to_list()
    topics, senders, receivers, starts = (
        frame[name].to_list() for name in ("topic", "sender", "receiver", "started_by")
    )
    has_effect = {cause for cause in causes if cause is not None}
    chains: dict[Key, list[list[int]]] = {}
    for last in range(len(messages)):
        if last in has_effect:
            continue
        chain = [last]
        while (cause := causes[chain[-1]]) is not None and len(chain) < HOPS_MAX:
            chain.append(cause)
        chain.reverse()
        key = (
            starts[chain[0]],
            tuple(topics[row] for row in chain),
            (senders[chain[0]], *(receivers[row] for row in chain)),
        )
        chains.setdefault(key, []).append(chain)
    return chains

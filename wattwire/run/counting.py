"""Messages of one run, counted end to end: sent = unique received + lost, gap by gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from wattwire.model.records import FLAG_CORRUPT, FLAG_FAILED, FLAG_TIMEOUT, FLAG_WARM_UP
from wattwire.run.specs import NodePlan

CALL_KINDS = ("call", "result")
LATENCY_QUANTILES = {"p50": 0.50, "p90": 0.90, "p99": 0.99}


@dataclass(frozen=True)
class Pair:
    """One expected stream: `sent` messages of `sender` that `receiver` is to get."""

    sender: int
    receiver: int
    sent: int
    unique: int
    lost: tuple[int, ...]
    duplicates: int
    out_of_range: int


def count_pairs(messages: pl.DataFrame, nodes: list[NodePlan]) -> list[Pair]:
    """Loss per (sender, receiver). For calls the receiver of the reply is the sender itself."""
    pairs: list[Pair] = []
    for node in nodes:
        if not node.sends:
            continue
        own = messages.filter(pl.col("node") == node.node)
        if node.role == "publisher":
            sent = _counters(own.filter((pl.col("flags") & FLAG_FAILED) == 0))
            receivers = [other.node for other in nodes if other.role == "subscriber"]
            arrived = messages.filter(pl.col("kind") == "message", pl.col("sender") == node.node)
            pairs += [
                _pair(node.node, r, sent, arrived.filter(pl.col("node") == r)) for r in receivers
            ]
        else:
            calls = own.filter(pl.col("kind").is_in(CALL_KINDS))
            bad = FLAG_TIMEOUT | FLAG_FAILED
            answered = calls.filter((pl.col("flags") & bad) == 0)
            pairs.append(_pair(node.node, node.node, _counters(calls), answered))
    return pairs


def _counters(frame: pl.DataFrame) -> npt.NDArray[np.uint64]:
    return frame["counter"].unique().sort().to_numpy().astype(np.uint64)


def _pair(sender: int, receiver: int, sent: npt.NDArray[np.uint64], arrived: pl.DataFrame) -> Pair:
    unique = _counters(arrived)
    in_range = np.intersect1d(unique, sent, assume_unique=True)
    lost = np.setdiff1d(sent, unique, assume_unique=True)
    return Pair(
        sender,
        receiver,
        len(sent),
        len(in_range),
        tuple(int(c) for c in lost),
        len(arrived) - len(unique),
        len(unique) - len(in_range),
    )


def receptions(messages: pl.DataFrame) -> pl.DataFrame:
    """What latency is of: arrivals at subscribers, calls in hand at clients; warm-up left out.

    Adds `latency_ns` = end − begin (null: timed out or no send time) and, for calls,
    `response_ns` = end − intended.
    """
    arrivals = messages.filter(
        (pl.col("kind") == "message") & (pl.col("node") != pl.col("sender"))
        | pl.col("kind").is_in(CALL_KINDS) & (pl.col("node") == pl.col("sender"))
    )
    return arrivals.filter((pl.col("flags") & (FLAG_WARM_UP | FLAG_CORRUPT)) == 0).with_columns(
        (pl.col("end_ns") - pl.col("begin_ns")).alias("latency_ns"),
        (pl.col("end_ns") - pl.col("intended_ns")).alias("response_ns"),
    )


def latency_summary(messages: pl.DataFrame, lost: int) -> dict[str, float | None]:
    """Latency of one run in µs. Lost messages stand as +∞: a quantile among them is null."""
    taken = receptions(messages).filter(pl.col("latency_ns").is_not_null())
    values = np.sort(taken["latency_ns"].to_numpy()) / 1000.0
    total = len(values) + lost
    summary: dict[str, float | None] = {"latency_samples": len(values)}
    for name, q in LATENCY_QUANTILES.items():
        index = int(np.ceil(q * total)) - 1
        summary[f"latency_{name}_us"] = float(values[index]) if 0 <= index < len(values) else None
    summary["latency_mean_us"] = float(values.mean()) if len(values) else None
    response = taken["response_ns"].drop_nulls()
    summary["response_p50_us"] = (
        float(response.median()) / 1000.0 if len(response) else None  # type: ignore[arg-type]
    )
    return summary


def schedule_lateness_us(messages: pl.DataFrame) -> dict[str, float | None]:
    """How late senders began, against their schedule: p99 over sent messages, µs."""
    own = messages.filter(pl.col("node") == pl.col("sender"), pl.col("intended_ns").is_not_null())
    if own.is_empty():
        return {"schedule_late_p50_us": None, "schedule_late_p99_us": None}
    late = (own["begin_ns"] - own["intended_ns"]) / 1000.0
    return {
        "schedule_late_p50_us": float(late.quantile(0.5) or 0.0),
        "schedule_late_p99_us": float(late.quantile(0.99) or 0.0),
    }


def count_summary(messages: pl.DataFrame, pairs: list[Pair], late_after_ns: int) -> dict[str, Any]:
    """Counts of one run. `late` arrived in the second half of the drain, already unique ones."""
    senders = {p.sender: p.sent for p in pairs}
    arrivals = receptions(messages)
    corrupt = messages.filter((pl.col("flags") & FLAG_CORRUPT) != 0)
    return {
        "sent": sum(senders.values()),
        "expected": sum(p.sent for p in pairs),
        "received_unique": sum(p.unique for p in pairs),
        "lost": sum(len(p.lost) for p in pairs),
        "duplicates": sum(p.duplicates for p in pairs),
        "late": int((arrivals["end_ns"] > late_after_ns).sum()),
        "corrupt": len(corrupt),
    }
